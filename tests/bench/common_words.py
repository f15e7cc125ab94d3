"""Makes the filter of common words that `core.fingerprint.common_words` reads, of documents in several languages.

    python -m tests.bench.common_words FOLDER

FOLDER holds files `*.jsonl.gz`, one document a line: `lang`, `text`, and `family` where several are versions of one.
Documents of one family count once.
"""

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from neardup.core.fingerprint.common_words import CHUNK, FILE, Filter, places_in
from neardup.core.fingerprint.word_hashes import hash_words
from neardup.core.text.normalize import tokens

MOST = 6_000  # words of a language
LEAST_DOCUMENTS = 4  # in which a common word stands
BITS = 19  # of the filter: 2^BITS, 64 KiB


def read_documents(folder: Path) -> Iterator[tuple[str, str, set[bytes]]]:
    """The language, the family and the words of each document."""
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            for line in lines:
                document = json.loads(line)
                if "text" in document:
                    yield document["lang"], document.get("family") or document["id"], set(tokens(document["text"]))


def list_common_words(folder: Path) -> dict[str, list[bytes]]:
    """The common words of each language, those in the most families first."""
    families = defaultdict[tuple[str, str], set[bytes]](set)
    for language, family, words in read_documents(folder):
        families[language, family] |= words
    counts = defaultdict[str, Counter[bytes]](Counter)
    for (language, _), words in families.items():
        counts[language].update(words)
    return {
        language: sorted((word for word, n in found.items() if n >= LEAST_DOCUMENTS), key=lambda w: (-found[w], w))[
            :MOST
        ]
        for language, found in counts.items()
    }


def make_filter(words: set[bytes]) -> Filter:
    """The filter of these words."""
    bits = np.zeros(1 << BITS, np.bool_)
    bits[places_in(hash_words(sorted(words)).hashes, BITS).astype(np.intp)] = True
    return np.packbits(bits.reshape(-1, CHUNK), axis=1, bitorder="little").view("<u8").ravel().astype(np.uint64)


if __name__ == "__main__":
    common = list_common_words(Path(sys.argv[1]))
    np.save(FILE, make_filter({word for listed in common.values() for word in listed}))
