"""Makes the filter of common words that `core.fingerprint.common_words` reads, of documents in several languages.

    python -m tests.bench.common_words FOLDER

FOLDER holds files `*.jsonl.gz`, one document a line: `lang`, `text` or `html`, and `family` where several are versions
of one.  Those of one family count once where it is asked in how many documents a word stands.  A document in another
script than its language is left out.
"""

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from neardup.core.fingerprint.common_words import CHUNK, FILE, Filter, find_places
from neardup.core.fingerprint.word_hashes import hash_words
from neardup.core.languages import SHIPPED
from neardup.core.text.decoding import NoStoryText
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page
from neardup.core.text.normalize import tokenize
from neardup.core.text.scripts import find_script_of_most
from neardup.records import Language

COVERED = 0.75  # of all words of a language; its common ones are the fewest that make so much, but at most MOST
MOST = 6_000
LEAST_DOCUMENTS = 4  # in which a common word stands
BITS = 19  # of the filter: 2^BITS, 64 KiB


def read_documents(folder: Path) -> Iterator[tuple[Language, str, list[bytes]]]:
    """The language, the family and the words of each document."""
    names = {code: name for name, code in SHIPPED.codes.items()}
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as lines:
            for document in map(json.loads, lines):
                language = names.get(document["lang"])
                text = document.get("text") or _shown(document["html"])
                if language and find_script_of_most(text) == SHIPPED[language].script.upper():
                    yield language, document.get("family") or document["id"], tokenize(text)


def _shown(html: str) -> str:
    try:
        return extract_page(html.encode(), "text/html", Extraction()).utf8.decode()
    except NoStoryText:
        return ""


def list_common_words(folder: Path) -> dict[Language, list[bytes]]:
    """The common words of each language, those in the most families first."""
    families = defaultdict[tuple[Language, str], set[bytes]](set)
    occurrences = defaultdict[Language, Counter[bytes]](Counter)
    for language, family, words in read_documents(folder):
        families[language, family].update(words)
        occurrences[language].update(words)
    documents = defaultdict[Language, Counter[bytes]](Counter)
    for (language, _), found in families.items():
        documents[language].update(found)
    return {language: _most_common(documents[language], counts) for language, counts in occurrences.items()}


def _most_common(documents: Counter[bytes], occurrences: Counter[bytes]) -> list[bytes]:
    """The words of a language, by the number of documents, until they cover it; given are the numbers of each."""
    left = COVERED * occurrences.total()
    listed = list[bytes]()
    for word in sorted(documents, key=lambda word: (-documents[word], word))[:MOST]:
        if left <= 0 or documents[word] < LEAST_DOCUMENTS:
            break
        listed.append(word)
        left -= occurrences[word]
    return listed


def make_filter(words: set[bytes]) -> Filter:
    """The filter of these words."""
    bits = np.zeros(1 << BITS, np.bool_)
    bits[find_places(hash_words(sorted(words)).hashes, BITS).astype(np.intp)] = True
    return np.packbits(bits.reshape(-1, CHUNK), axis=1, bitorder="little").view("<u8").ravel().astype(np.uint64)


if __name__ == "__main__":
    common = list_common_words(Path(sys.argv[1]))
    np.save(FILE, make_filter({word for listed in common.values() for word in listed}))
