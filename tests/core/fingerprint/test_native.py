"""Law: for every text the native core gives what the reference gives, and it supports nearly all texts."""

import gc
import unicodedata
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import xxhash
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core import native
from neardup.core.fingerprint.compute import fingerprint, fingerprint_text, hash_text
from neardup.core.fingerprint.word_hashes import hash_words
from neardup.core.native import fingerprint as binding
from neardup.core.native.fingerprint import (
    MOST_FREQUENT,
    HashedText,
    count_utf8_characters,
    fingerprint_utf8,
    hash_utf8,
)
from neardup.core.text.codepoints import (
    BEYOND_TABLE,
    CHILLU,
    COMBINING,
    LONE_MARK,
    NUKTA,
    SECOND,
    TABLE_END,
    list_compositions,
)
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.core.text.look_alikes import list_disguises, map_foreign_letters
from neardup.core.text.normalize import load_flagged_table, load_table
from neardup.core.text.scripts import count_characters
from neardup.records import Fingerprint, Language

from tests.core.text.test_normalize import (
    BLOCKS,
    FLAGGED,
    NUKTAS,
    PAGES,
    every_language,
    hostile,
    in_one_script,
    letters,
    normalised_in_full,
    thorough,
)
from tests.support.languages import TEXTS
from tests.support.sampling import CHAOS, sample_cases

pytestmark = pytest.mark.native
STRIPE, BLOCK = 64, 1024  # bytes that XXH3 takes at once of a long text

LONE_MARKS = [chr(code) for code in np.flatnonzero(load_flagged_table() & LONE_MARK).tolist()]
COMPOSING = [character for character in FLAGGED if not load_flagged_table()[ord(character)] & COMBINING]
LETTERS_WITH_MARKS = "aकكاويہےەెか"

stretched = st.tuples(in_one_script, st.integers(1, 300)).map(lambda drawn: drawn[0] * drawn[1])  # often long words

marked = st.text(st.sampled_from([*LETTERS_WITH_MARKS, *LONE_MARKS, *" \u094d\u0dca\u093c\u200d\u0301@1"]))
look_alikes = st.text(
    st.one_of(
        st.sampled_from("aeо0１145278@$ \u200b\u200e\u0336é×कଓ"),
        st.sampled_from("хοнднеηՀἀꓮᏴꮃ𐐄𝛂ᴀⅼ"),
        st.sampled_from([*map(chr, map_foreign_letters())]),
    ),
    max_size=16,
)


def plain_fingerprint(text: str) -> Fingerprint | None:
    words = normalised_in_full(text)
    return fingerprint(words) if words else None


def is_supported(text: str) -> bool:
    return isinstance(fingerprint_utf8(text.encode()), Fingerprint)


@thorough
@given(st.one_of(in_one_script, hostile, stretched, marked))
def test_both_implementations_give_the_same_fingerprint(text: str) -> None:
    assert fingerprint_text(text) == plain_fingerprint(text)


@thorough
@given(st.one_of(in_one_script, hostile, stretched, marked, look_alikes))
@example("k\u03bd0")
@example("\u0622\u0655")
def test_both_implementations_give_the_same_words(text: str) -> None:
    words, found = normalised_in_full(text), hash_text(text)
    assert found.normalised == b" ".join(words)
    if words:
        expected = hash_text.reference(b" ".join(words), is_normalised=True)
        assert found.normalised == expected.normalised
        assert found.words.tolist() == expected.words.tolist()
        assert found.skeleton_hashes.tolist() == expected.skeleton_hashes.tolist()


@every_language
def test_the_native_core_supports_every_letter_of_the_language(language: Language) -> None:
    """Except combining marks, letters that casefold to several code points, and those that look like others."""
    block = [chr(code) for code in BLOCKS[language]]
    beyond_table = {c for c in block if load_flagged_table()[ord(c)] & BEYOND_TABLE}
    disguised = {*list_disguises(), *map_foreign_letters()}
    assert all(
        unicodedata.combining(c) or len(c.casefold()) > 1 or disguised.intersection(map(ord, c + c.casefold()))
        for c in beyond_table
    )
    text = " ".join(c for c in block if c not in beyond_table)
    assert is_supported(text)
    assert fingerprint_text(text) == plain_fingerprint(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}-{page.stem}")
def test_the_native_core_supports_real_stories(page: Path) -> None:
    text = extract_visible_text(page.read_text(encoding="utf-8"), Extraction("article .story, div.post-body"))
    assert is_supported(text)
    assert fingerprint_text(text) == plain_fingerprint(text)


def normal_form(text: str) -> bytes:
    """The normalised text by the native core, which must support it."""
    found = hash_utf8(text.encode())
    assert isinstance(found, HashedText), "the native core does not support the text"
    return found.normalised


def test_the_native_core_normalises_every_supported_code_point() -> None:
    codes = np.flatnonzero(load_flagged_table() & BEYOND_TABLE == 0).tolist()
    every = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]  # UTF-8 has no surrogates
    assert len(every) > TABLE_END - 6100
    supported = sample_cases(every, len(every) // 24)
    text = " ".join(f"क{c}ा{c} {c}ക" for c in [*supported, "\U0010ffff"])
    assert normal_form(text) == b" ".join(normalised_in_full(text))


@pytest.mark.parametrize("between", ["", "\u200d", "\u093c", "\u094d", "\u0d4d", " ", "क"])
def test_the_native_core_normalises_every_pair_that_might_compose(between: str) -> None:
    seconds = [second for second in COMPOSING if ord(second) != NUKTA or between not in ("\u094d", "\u0d4d")]
    firsts = sample_cases(COMPOSING, len(COMPOSING) // 3)
    pairs = [first + between + second for first, second in product(firsts, seconds)]
    text = " ".join(pairs) + "".join(pairs)
    assert normal_form(text) == b" ".join(normalised_in_full(text))


@pytest.mark.parametrize("between", ["", "\u200d", "\u093c", " "])
def test_the_native_core_normalises_every_mark_beside_which_no_other_stands(between: str) -> None:
    marked = [letter + between + mark for letter, mark in product(LETTERS_WITH_MARKS, LONE_MARKS)]
    text = " ".join(marked) + "".join(marked)
    assert normal_form(text) == b" ".join(normalised_in_full(text))


@pytest.mark.parametrize("between", ["", "\u200d"])
def test_both_implementations_agree_on_marks_that_compose_within_a_composed_letter(between: str) -> None:
    """As U+0655 does within U+0622: NFC puts it before the mark of the letter, whose combining class is higher."""
    composed = [chr(code) for code in np.flatnonzero(np.isin(load_table(), list_compositions()[:, 2])).tolist()]
    marks = [mark for mark in LONE_MARKS if load_flagged_table()[ord(mark)] & SECOND]
    texts = [letter + between + mark for letter, mark in product(composed, marks)]
    wrong = [text for text in texts if fingerprint_text(text) != plain_fingerprint(text)]
    assert not wrong, f"the native core normalises these otherwise: {wrong}"


@pytest.mark.parametrize("letter", CHILLU)
@pytest.mark.parametrize("virama", ["\u0d4d", "\u0d4d\u0d3c", "\u093c\u0d4d", "\u0d4d\u093c", "\u0d4d\u200c", "\u094d"])
def test_both_implementations_agree_on_chillu_sequences(letter: str, virama: str) -> None:
    text = f"അ{letter}{virama}\u200d ക{virama}\u200dാ {virama}\u200d {letter}{virama}\u200d"
    assert fingerprint_text(text) == plain_fingerprint(text)


@pytest.mark.parametrize("nothing", ["", " ", "\u200d", "\u200d\u200d \u00ad", "\ud800", "।", "\u093c", "\0"])
def test_a_text_without_words_has_no_fingerprint(nothing: str) -> None:
    assert fingerprint_text(nothing) is None


@pytest.mark.parametrize("times", [1, 2, 8, 9, 255, 256, MOST_FREQUENT - 1, MOST_FREQUENT])
def test_both_implementations_agree_on_words_of_any_frequency(times: int) -> None:
    text = "कहानी " * times + "एक थी"
    assert is_supported(text) == (times < MOST_FREQUENT)
    assert fingerprint_text(text) == plain_fingerprint(text)


@pytest.mark.parametrize("words", [1, 2, 19, 20, 21, 22, 100_000 if CHAOS > 1 else 20_000])
def test_both_implementations_agree_on_stories_of_any_length(words: int) -> None:
    text = " ".join(f"शब्द{n}" for n in range(words))
    assert fingerprint_text(text) == plain_fingerprint(text)
    assert fingerprint_text(f"{text} {text}") == plain_fingerprint(f"{text} {text}")


def test_concurrent_threads_get_the_right_fingerprints() -> None:
    texts = [f"{text} {n} " * n for text in TEXTS.values() for n in range(1, 40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(fingerprint_text, texts)) == [plain_fingerprint(text) for text in texts]


def test_words_of_every_length_have_the_hashes_of_the_package() -> None:
    rng = np.random.default_rng(1)
    sizes = [
        *range(1, 300),
        *(BLOCK * n + step for n in (1, 2, 5) for step in (-1, 0, 1, STRIPE - 1, STRIPE, STRIPE + 1)),
    ]
    words = [bytes(rng.integers(ord("a"), ord("z") + 1, size, np.uint8)) for size in sizes]
    found = hash_text(b" ".join(words), is_normalised=True)
    wrong = [
        len(word) for word, got, want in zip(words, found.words, hash_words(words).hashes, strict=True) if got != want
    ]
    assert not wrong, f"words of these sizes have another hash: {wrong}"


@given(st.integers(1, 4 * BLOCK))
@settings(deadline=None)
def test_a_text_of_any_length_has_the_hash_of_the_package(size: int) -> None:
    text = "a" * size
    made = fingerprint_text(text)
    assert made is not None
    assert made.text_hash == xxhash.xxh3_128_digest(text.encode()), f"{size} bytes"


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_bytes_that_are_not_utf_8_are_refused(text: bytes) -> None:
    for filler in ("", "क", "a ", "কa।"):  # in a long text many bytes are counted at once
        around = (filler * 100).encode()
        assert_only_utf_8_is_read(around + text + around)


def assert_only_utf_8_is_read(text: bytes) -> None:
    try:
        decoded = text.decode()
    except UnicodeDecodeError:
        with pytest.raises(ValueError, match="contradicts"):
            count_utf8_characters(text)
        for read in (fingerprint_utf8, hash_utf8):
            with suppress(ValueError):
                assert read(text) == native.UNSUPPORTED, "a fingerprint of bytes that are no text"
    else:
        assert count_utf8_characters(text)[:5] == count_characters.reference(decoded)[:5]


@every_language
def test_both_implementations_agree_on_golden_texts_and_nuktas(language: Language) -> None:
    marked = " ".join(f"{letter}{nukta}" for letter in letters[language] for nukta in sorted(NUKTAS))
    for text in (TEXTS[language], unicodedata.normalize("NFD", TEXTS[language]), marked):
        assert fingerprint_text(text) == plain_fingerprint(text), text


@pytest.mark.native
def test_a_call_keeps_the_tables_that_it_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that make the tables at the same time each have their own, of which one is kept."""
    tables, function = weakref.ref(binding._hold_tables(False)), binding._fingerprint_text

    def call(*arguments: object) -> int:
        binding._hold_tables.cache_clear()
        gc.collect()
        assert tables() is not None, "the tables are gone while the native core reads them"
        return function(*arguments)

    monkeypatch.setattr(binding, "_fingerprint_text", call)
    assert isinstance(fingerprint_utf8(b"one two three"), Fingerprint)
