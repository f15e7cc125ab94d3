"""Laws of the library's functions: a text copies itself, `compare` is symmetric, and errors name their cause;
`find_copies` and `Index` find the same copies, in any order, from any kind of column.
"""

import subprocess
import sys
from collections.abc import Hashable, Iterable
from typing import Any

import neardup
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup import Copy
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.text.normalize import nfc, tokenize
from neardup.core.verify.tiers import EXACT, PARTIAL, TRANSLITERATED
from neardup.records import MIN_BLOCK, Language

from tests.support.languages import CODES, ENGLISH, KANNADA, SAMPLED, TEXTS
from tests.support.sample_texts import STORIES, rng, transliterated


@pytest.mark.parametrize(("language", "code"), CODES.items())
def test_a_text_is_an_exact_copy_of_itself(language: Language, code: str) -> None:
    comparison = neardup.compare(TEXTS[language], TEXTS[language].upper(), language=code)
    assert (comparison.language, comparison.kind) == (language, EXACT)
    assert (comparison.jaccard, comparison.hamming) == (1.0, 0)
    assert neardup.fingerprint(TEXTS[language], language=code) == fingerprint_text(TEXTS[language])


def test_exchanging_the_texts_exchanges_the_containments() -> None:
    words = [f"w{n}" for n in range(60)]
    part, whole = " ".join(words[:30]), " ".join(words)
    first, second = neardup.compare(part, whole, "en"), neardup.compare(whole, part, "ENGLISH")
    assert (first.kind, first.containment_a, first.longest_run_words) == (PARTIAL, 1.0, 30)
    assert first.copied_words == 30
    assert (first.containment_a, first.containment_b) == (second.containment_b, second.containment_a)
    assert (first.kind, first.jaccard, first.hamming) == (second.kind, second.jaccard, second.hamming)
    assert str(first).startswith("partial: similarity 1.00, Jaccard 0.49, containment 1.00 of a in b")


def test_unrelated_texts_are_no_copy() -> None:
    comparison = neardup.compare("one two three four", "five six seven eight", "en")
    assert (comparison.kind, comparison.jaccard) == (None, 0.0)
    assert str(comparison).startswith("no copy: ")


@pytest.mark.parametrize(
    ("texts", "language", "why"),
    [(("a b", "c"), "xx", "unknown language 'xx'.*Hindi"), (("a b", "."), "hi", "text_b has no words")],
)
def test_errors_name_the_language_or_text(texts: tuple[str, str], language: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        neardup.compare(*texts, language=language)
    if language == "xx":
        with pytest.raises(ValueError, match=why):
            neardup.fingerprint(texts[0], language)


def test_importing_the_package_loads_nothing_else() -> None:
    program = "import sys, neardup; print(*(name for name in sys.modules if name.startswith(('numpy', 'neardup.'))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [], "every command would start more slowly"


SAMPLES = {f"{language} {n}": text for language in SAMPLED for n, text in enumerate(STORIES[language])}
WORDS = STORIES[ENGLISH][0].split()


def facts_of(copies: Iterable[Copy]) -> set[Hashable]:
    """Each copy without the order of its two texts."""
    return {
        (
            frozenset([(copy.a, copy.containment_a, copy.spans_a), (copy.b, copy.containment_b, copy.spans_b)]),
            (copy.kind, copy.language, copy.jaccard, copy.hamming, copy.copied_words),
        )
        for copy in copies
    }


@pytest.fixture(scope="module")
def found() -> set[Hashable]:
    found = neardup.find_copies(SAMPLES)
    assert {copy.language for copy in found} == set(SAMPLED), "a language has no copies"
    return facts_of(found)


@settings(max_examples=3)
@given(st.permutations(list(SAMPLES)))
def test_the_order_of_the_texts_makes_no_difference(found: set[Hashable], keys: list[str]) -> None:
    assert facts_of(neardup.find_copies({key: SAMPLES[key] for key in keys})) == found


def test_an_index_finds_what_find_copies_finds(found: set[Hashable]) -> None:
    index, looked_up = neardup.Index(), set[Hashable]()
    for key, text in SAMPLES.items():
        for copy in index.look_up(text):
            looked_up |= facts_of([Copy(**{name: getattr(copy, name) for name in Copy.__struct_fields__} | {"b": key})])
        index.add(key, text)
    assert looked_up == found
    assert len(index) == len(SAMPLES)


class Frame:
    """A column as pandas has it: `items` are index and text."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def items(self) -> Any:
        return iter(self._texts.items())


def test_every_kind_of_column_gives_the_same(found: set[Hashable]) -> None:
    keys, texts = list(SAMPLES), list(SAMPLES.values())
    columns: dict[str, Any] = {
        "a list": texts,
        "an iterator": iter(texts),
        "an array of Arrow": pa.array(texts),
        "a chunked array of Arrow": pa.chunked_array([texts[:7], texts[7:]]),
    }
    for name, column in columns.items():
        assert facts_of(neardup.find_copies(column, keys=keys)) == found, f"{name} gives other copies"
    assert facts_of(neardup.find_copies(Frame(SAMPLES))) == found, "a column of pandas gives other copies"
    places = {(keys[int(str(copy.a))], keys[int(str(copy.b))]) for copy in neardup.find_copies(texts)}
    assert len(places) == len(found)


def test_the_spans_are_the_copied_text() -> None:
    for copy in neardup.find_copies(SAMPLES):
        a, b = nfc(SAMPLES[str(copy.a)]), nfc(SAMPLES[str(copy.b)])
        if copy.kind == "exact":
            assert copy.spans_a, f"{copy.a} has no spans"
        for start, end in copy.spans_a:
            words = tokenize(a[start:end])
            assert len(words) >= MIN_BLOCK
            assert {words[0], words[-1]} <= set(tokenize(b)), f"{words[0]!r} or {words[-1]!r} was not copied"


def test_what_is_not_compared_is_named_with_the_reason() -> None:
    found = neardup.find_copies({"short": "नमस्ते", "greek": "Ελληνικά γράμματα " * 9, "none": None})
    assert not found
    assert found.not_compared["short"] == "fewer than 10 words"
    assert "Greek" in found.not_compared["greek"]
    assert found.not_compared["none"] == "a text is a str, not NoneType"


@pytest.mark.parametrize(("count", "copies"), [(50, True), (51, False)])
def test_a_common_passage_is_not_a_copy(count: int, copies: bool) -> None:
    """What more than 50 texts have in common does not count as copied."""
    common = " ".join(WORDS[:80])
    texts = [f"{common} " + " ".join(rng(n).sample(WORDS[80:], 120)) for n in range(count)]
    assert bool(neardup.find_copies(texts, language="en")) == copies


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="unknown language 'klingon'; known are Hindi"):
        neardup.find_copies(["a"], language="klingon")
    with pytest.raises(ValueError, match=r"zip\(\) argument"):
        neardup.find_copies(["a", "b"], keys=["a"])
    with pytest.raises(TypeError, match=r"a table: give its column of texts, such as table\["):
        neardup.find_copies(pa.table({"id": [1, 2], "text": ["a", "b"]}))
    with pytest.raises(TypeError, match="a single text: give a list of texts"):
        neardup.find_copies(" ".join(WORDS))
    index = neardup.Index()
    index.add("one", " ".join(WORDS))
    with pytest.raises(ValueError, match="'one' was added before"):
        index.add("one", " ".join(WORDS))
    with pytest.raises(ValueError, match="fewer than 10 words"):
        index.look_up("word")


@pytest.mark.parametrize("language", [language for language in SAMPLED if language not in {ENGLISH, KANNADA}])
def test_a_transliteration_is_found(language: Language) -> None:
    story = STORIES[language][0]
    texts = {"original": story, "copy": transliterated(story, language, KANNADA), "other": STORIES[ENGLISH][0]}
    found = neardup.find_copies(texts)
    assert [(copy.kind, copy.a, copy.b) for copy in found] == [(TRANSLITERATED, "original", "copy")]
    assert found[0].spans_a and found[0].spans_b
    index = neardup.Index()
    index.add("original", story)
    assert [copy.kind for copy in index.look_up(texts["copy"])] == [TRANSLITERATED]
    assert neardup.compare(story, texts["copy"]).kind == TRANSLITERATED
