"""Runs the index of datasketch, rensa or simhash on a corpus, used as its documentation shows.

`python -m tests.bench.peers NAME FOLDER` prints a `Detected` by row of the table, as JSON.  Each story is looked up
before it is inserted, in an index of its language.
"""

import json
import logging
import re
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
from datasketch import MinHash, MinHashLSH
from msgspec import Struct
from msgspec.structs import asdict
from neardup.core.languages import LANGUAGES
from neardup.core.text.normalize import tokenize
from rensa import RMinHash, RMinHashLSH
from simhash import Simhash, SimhashIndex

from tests.bench.corpus import Document, ordered, read_documents
from tests.bench.detector import Detected
from tests.support.resource_meter import peak_rss_mb

PERMUTATIONS = 128
THRESHOLD = 0.5
RENSA_BANDS = 32  # of 4 rows: half of the pairs with a Jaccard similarity of .42 share a band
MAX_DISTANCE = 3  # bits
FEATURE_LETTERS = 3

Words = Callable[[str], list[bytes]]


class Peer(Struct, frozen=True):
    """How a library makes sketches of texts, and how it creates, queries and fills an index of them.

    The memory of an index can be measured if it is made of Python's objects.
    """

    sketch: Callable[[Sequence[str]], Sequence[Any]]
    index: Callable[[], Any]
    query: Callable[[Any, Any], Sequence[int]]
    insert: Callable[[Any, int, Any], None]
    in_python: bool = True


def split(text: str) -> list[bytes]:
    return text.lower().encode().split()


def shingles(words: list[bytes]) -> set[bytes]:
    return {b" ".join(pair) for pair in pairwise(words)} or set(words)


def minhashes(texts: Sequence[str], words: Words) -> list[Any]:
    """One update per shingle, as in datasketch's README."""
    return [_minhash(shingles(words(text))) for text in texts]


def _minhash(values: set[bytes]) -> Any:
    sketch = MinHash(num_perm=PERMUTATIONS)
    for value in values:
        sketch.update(value)
    return sketch


def bulk_minhashes(texts: Sequence[str], words: Words) -> list[Any]:
    """The same sketches, one call for all: the fast method in datasketch's documentation."""
    return list(MinHash.bulk((shingles(words(text)) for text in texts), num_perm=PERMUTATIONS))


def features(text: str) -> list[str]:
    """`get_features` as shown by the author of the package."""
    letters = re.sub(r"[^\w]+", "", text.lower())
    return [letters[at : at + FEATURE_LETTERS] for at in range(max(len(letters) - FEATURE_LETTERS + 1, 1))]


def datasketch(sketch: Callable[[Sequence[str], Words], list[Any]], words: Words) -> Peer:
    return Peer(
        sketch=lambda texts: sketch(texts, words),
        index=partial(MinHashLSH, threshold=THRESHOLD, num_perm=PERMUTATIONS),
        query=lambda index, sketch: index.query(sketch),
        insert=lambda index, story_id, sketch: index.insert(story_id, sketch),
    )


def rensa(words: Words) -> Peer:
    return Peer(
        sketch=lambda texts: RMinHash.from_token_sets(
            [list(shingles(words(text))) for text in texts], num_perm=PERMUTATIONS, seed=1
        ),
        index=partial(RMinHashLSH, threshold=THRESHOLD, num_perm=PERMUTATIONS, num_bands=RENSA_BANDS),
        query=lambda index, sketch: index.query(sketch),
        insert=lambda index, story_id, sketch: index.insert(story_id, sketch),
        in_python=False,
    )


PEERS = {
    "datasketch, split()": datasketch(minhashes, split),
    "datasketch, our words": datasketch(minhashes, tokenize),
    "datasketch bulk, split()": datasketch(bulk_minhashes, split),
    "datasketch bulk, our words": datasketch(bulk_minhashes, tokenize),
    "rensa, split()": rensa(split),
    "rensa, our words": rensa(tokenize),
    "simhash": Peer(
        sketch=lambda texts: [Simhash(features(text)) for text in texts],
        index=partial(SimhashIndex, [], k=MAX_DISTANCE),
        query=lambda index, sketch: [int(name) for name in index.get_near_dups(sketch)],
        insert=lambda index, story_id, sketch: index.add(str(story_id), sketch),
    ),
}


def detect(peer: Peer, documents: Sequence[Document]) -> Detected:
    """Sketch all documents, then look up and insert one after the other."""
    found = Detected(len(documents))
    with found.stage("sketch"):
        sketches = peer.sketch([document.text for document in documents])
    indexes = {language: peer.index() for language in LANGUAGES}
    with found.stage("index"):
        for document, sketch in zip(documents, sketches, strict=True):
            index = indexes[document.language]
            found.pairs += (ordered(document.id, other) for other in peer.query(index, sketch))
            peer.insert(index, document.id, sketch)
    found.peak_mb = peak_rss_mb()
    if peer.in_python:
        found.index_bytes = _index_bytes(peer, documents, sketches)
    return found


def _index_bytes(peer: Peer, documents: Sequence[Document], sketches: Sequence[Any]) -> int:
    """The memory that indexes filled with the sketches allocate."""
    indexes = {language: peer.index() for language in LANGUAGES}
    tracemalloc.start()
    for document, sketch in zip(documents, sketches, strict=True):
        peer.insert(indexes[document.language], document.id, sketch)
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return allocated


if __name__ == "__main__":
    logging.getLogger("simhash").setLevel(logging.ERROR)  # it logs a warning for each large bucket
    name, folder = sys.argv[1], Path(sys.argv[2])
    tokenize("")  # the first call builds a table
    result = detect(PEERS[name], read_documents(folder / "manifest.csv", folder / "html"))
    click.echo(json.dumps({name: asdict(result)}))
