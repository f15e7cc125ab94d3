"""Fuzzing of bytes -> text -> words -> fingerprint: mutated pages of ten languages, 600 times CHAOS of them.

The seeds are the samples and malformed markup; with CORPUS=folder, the pages of d_messy.jsonl.gz in that folder
replace the malformed markup: regression cases of HTML parsers (html5lib-tests, HTML Tidy, jsoup) and home pages.
"""

import gzip
import json
import os
import unicodedata
from functools import cache, reduce
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import fingerprint, fingerprint_text
from neardup.core.text.decoding import NoStoryText
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.normalize import tokenize
from neardup.records import Language

from tests.support.faults.hostile_pages import ENCODED, LABELS
from tests.support.languages import SAMPLED
from tests.support.paths import SAMPLES
from tests.support.random_pages import BROKEN, NOISE, TAGS, WORDS
from tests.support.sampling import CHAOS

INPUTS = 600  # of eleven kinds of seed
SEED_BYTES = 6_000
GROWTH = 4  # bytes of words at most for a byte of a page: some characters grow when they are case-folded
extractions = st.sampled_from([Extraction(), Extraction("article .story, div.post-body, p", (".share", "b"))])
MESSY = [
    "<table><p>{0}<tr>{1}</table><td>{0}",
    "<b><p>{0}</b>{1}<i><a><div>{0}</i>{1}</a>",
    "<svg><p>{0}<![CDATA[{1}]]></svg><math><mi>{0}",
    "<template>{0}<template></p>{1}</template>{0}",
    "<select><option>{0}<textarea>{1}</select>{0}</textarea>{1}",
    "<plaintext>{0}</plaintext><b>{1}",
    "<!DOCTYPE html PUBLIC '{0}'><frameset><body>{1}<noframes>{0}",
    "<script><!--<script>{0}</script>--></script>{1}<style>{0}</style",
    "<a href='{0}><p title=\"{1}>{0}</p a=b a=c>{1}",
    "&#x{0};&#99999999;&#0;&amp{1}&notit;&#xDFFF{0}",
    "<ruby>{0}<rp>{1}<rt>{0}</ruby><nobr>{1}<nobr>{0}",
    "<form><form>{0}</form><button><button>{1}<h1><h2>{0}</h1>",
]
BITS = [
    *(f"<{tag}>".encode() for tag in TAGS),
    *(f"</{tag}>".encode() for tag in TAGS),
    *(bit.encode() for bit in [*WORDS, *BROKEN, *NOISE]),
    *(f"<meta charset={label}>".encode() for label in LABELS),
    *(
        c.encode()
        for c in "\u0301\u0316\u093c\u0d4d\u200d\u200c\u0345\ufdfa\u0390\ufb03\u1e9e\u0130\U0001d160\u1100\u1161"
    ),
    *(
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\xfe\xff",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\xaf",
        b"\xe0\xa4",
        b"\x80",
    ),
    *(b" hidden ", b" style='display:none'", b"<p " + b"a b=c " * 50, b"<div>" * 200, b"<b><i>" * 100),
]


@cache
def seeds(kind: Language | None) -> list[bytes]:
    """Excerpts of pages: of a language's samples, or messy ones."""
    if kind is not None:
        return [page.read_bytes()[:SEED_BYTES] for page in sorted((SAMPLES / "stories" / kind).glob("*.html"))]
    if corpus := os.environ.get("CORPUS"):
        with gzip.open(Path(corpus) / "d_messy.jsonl.gz", "rt", encoding="utf-8") as lines:
            return [json.loads(line)["html"].encode("utf-8", "surrogatepass")[:SEED_BYTES] for line in lines]
    return [messy.format(word, other).encode() for messy in MESSY for word in WORDS for other in WORDS]


content_types = st.sampled_from([None, *(f"text/html; charset={label}" for label in LABELS)])
places = st.floats(0, 1)
bits = st.sampled_from(BITS) | st.binary(max_size=8)
mutations = st.one_of(
    st.tuples(st.just("insert"), places, bits),
    st.tuples(st.just("overwrite"), places, bits),
    st.tuples(st.just("repeat"), places, st.integers(1, 300), st.integers(2, 20)),
    st.tuples(st.just("delete"), places, st.integers(1, 300)),
    st.tuples(st.just("flip"), places, st.integers(0, 7)),
    st.tuples(st.just("cut"), places),
    st.tuples(st.just("recode"), places, st.sampled_from(ENCODED)),
    st.tuples(st.just("decompose"), places),
)
Mutation = tuple[Any, ...]


def mutated(page: bytes, mutation: Mutation) -> bytes:
    kind, place, *rest = mutation
    at = int(place * len(page))
    before, after = page[:at], page[at:]
    match kind, rest:
        case "insert", [bit]:
            after = bit + after
        case "overwrite", [bit]:
            after = bit + after[len(bit) :]
        case "repeat", [size, times]:
            after = after[:size] * times + after[size:]
        case "delete", [size]:
            after = after[size:]
        case "flip", [bit]:
            after = bytes([byte ^ 1 << bit for byte in after[:1]]) + after[1:]
        case "recode", [encoding]:
            after = after.decode("utf-8", "replace").encode(encoding, "replace")
        case "decompose", _:
            after = unicodedata.normalize("NFD", after.decode("utf-8", "replace")).encode()
        case _:
            after = b""
    return before + after


def pages(kind: Language | None) -> st.SearchStrategy[bytes]:
    """Seeds of a kind, mutated up to eight times."""
    many = st.lists(mutations, max_size=8)
    return st.builds(lambda seed, changes: reduce(mutated, changes, seed), st.sampled_from(seeds(kind)), many)


def text_of(body: bytes, content_type: str | None, extraction: Extraction) -> str | None:
    try:
        return extract_page_text(body, content_type, extraction)
    except NoStoryText as error:
        event(error.reason)
        return None


@settings(max_examples=INPUTS * CHAOS, suppress_health_check=list(HealthCheck), database=None)
@given(st.sampled_from([*SAMPLED, None]), st.data())
def test_the_fingerprint_of_any_page_is_sound(kind: Language | None, data: st.DataObject) -> None:
    body, content_type, extraction = data.draw(pages(kind)), data.draw(content_types), data.draw(extractions)
    text = text_of(body, content_type, extraction)
    assert text_of(body, content_type, extraction) == text, "the same page, another text"
    if text is None:
        return
    words = tokenize(text)
    joined = b" ".join(words).decode()
    assert joined.split() == [word.decode() for word in words], "a word is empty or contains a space"
    assert unicodedata.is_normalized("NFC", joined)
    assert len(joined.encode()) <= GROWTH * len(body) + len(words)
    compiled = fingerprint_text(text)
    assert compiled == (fingerprint(words) if words else None), (
        "the compiled kernel and the plain implementation differ"
    )
    assert compiled is None or compiled.words == len(words)
    event("fingerprinted" if compiled else "no word")
