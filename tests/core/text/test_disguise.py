"""Laws: the share of disguised letters and of control characters is exact, whichever way it is measured."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.text import disguise as disguise_module
from neardup.core.text.disguise import FORM, LEAST, Disguise, measure_disguise
from neardup.core.text.scripts import count_characters
from neardup.records import Language

from tests.support.languages import ENGLISH, MALAYALAM, SAMPLED, TEXTS
from tests.support.sample_texts import STORIES
from tests.support.sampling import count_examples

UNSEEN_SIGNS = "\u00ad\u200b\u200e\u2061\u3164\ufdd0\ufe0e\ufeff\U000e0061"
CONTROLS = "\x01\x08\x0e\x1b\x7f\x80\x9f"
CYRILLIC = str.maketrans("aceopxy", "асеорху")
FULLWIDTH = {n: n + 0xFEE0 for n in range(0x61, 0x7B)}
WORDS = {
    language: " ".join(
        "".join(c for c in word if unicodedata.category(c)[0] in "LM") for word in stories[0].split()[:80]
    )
    for language, stories in STORIES.items()
}
PIECES = st.sampled_from([*TEXTS.values(), *UNSEEN_SIGNS, *CONTROLS, "аре", "caпe", "e\u0336", "क्\u200d", "12, ", "…"])


def of(text: str) -> Disguise:
    return measure_disguise(text, count_characters(text))


def counted(share: float) -> object:
    return pytest.approx(share) if share > LEAST else 0


def letters(text: str) -> int:
    return len(text) - text.count(" ")


def with_signs(data: st.DataObject, text: str, places: list[int], signs: str) -> tuple[str, int]:
    """A text with signs after some of its characters at these places, and their number."""
    after = data.draw(st.sets(st.sampled_from(places), max_size=len(places) // data.draw(st.integers(1, 16))))
    sign = data.draw(st.sampled_from(signs))
    return "".join(c + sign * (n in after) for n, c in enumerate(text)), len(after)


@given(st.sampled_from(SAMPLED), st.data())
def test_unseen_characters_count_by_their_share_of_the_letters(language: Language, data: st.DataObject) -> None:
    text = WORDS[language]
    places = [n for n, c in enumerate(text) if c != " "]
    disguised, n = with_signs(data, text, places, UNSEEN_SIGNS)
    assert of(disguised) == (counted(n / (letters(text) + n)), 0), language


@given(st.sampled_from(SAMPLED), st.data())
def test_control_characters_count_by_their_share_of_all_characters(language: Language, data: st.DataObject) -> None:
    text = WORDS[language]
    disguised, n = with_signs(data, text, list(range(len(text))), CONTROLS)
    assert of(disguised) == (0, counted(n / (len(text) + n))), language


@given(st.sampled_from([CYRILLIC, FULLWIDTH]), st.integers(0, 80))
def test_look_alikes_count_by_their_share_of_the_letters(look_alike: dict[int, int], end: int) -> None:
    words = WORDS[ENGLISH].lower().split()
    disguised = [word.translate(look_alike) for word in words[:end]]
    if look_alike is CYRILLIC:  # a word of other letters only is a word of another language
        disguised = [
            disguised_word if any(c.isascii() for c in disguised_word) else word
            for disguised_word, word in zip(disguised, words, strict=False)
        ]
    text = " ".join(disguised + words[end:])
    n = sum(not c.isascii() for c in text) - sum(not c.isascii() for c in " ".join(words))
    assert of(text) == (counted(n / letters(text)), 0)


@settings(max_examples=count_examples(30))
@given(st.lists(PIECES | st.text(max_size=9)).map("".join))
def test_the_native_count_equals_the_reference(text: str) -> None:
    assert count_characters(text) == count_characters.reference(text)


RUNS = st.sampled_from(
    ["क", "बर ", "ক।", "ম", "a", "a ", "“", "\u2019\u00a0", "\u20b9", "\u0085", "é", "ا", "\x01", "\U0001f600"]
)


@settings(max_examples=count_examples(60))
@given(st.lists(st.builds(str.__mul__, RUNS, st.integers(1, 150)), max_size=8).map("".join))
def test_the_native_count_equals_the_reference_in_long_texts(text: str) -> None:
    assert count_characters(text) == count_characters.reference(text)


def test_no_disguise_is_usual() -> None:
    codes = np.flatnonzero(disguise_module._classify_code_points() >= FORM).tolist()
    usual = [f"U+{code:04X}" for code in codes if not count_characters(chr(code)).unusual]
    assert not usual


@pytest.mark.parametrize("language", SAMPLED)
def test_prose_is_not_disguised(language: Language) -> None:
    for text in STORIES[language]:
        assert of(text) == Disguise(), text[:40]
        assert of(unicodedata.normalize("NFD", text)) == Disguise(), f"decomposed: {text[:40]}"
    assert of("") == Disguise()


def test_joiners_count_unless_they_form_a_conjunct() -> None:
    word = "അവൻ"
    assert of("അവന്\u200d " * 50) == Disguise(), f"chillus of {MALAYALAM}"
    assert of("র\u200d্যাব " * 50) == Disguise(), "a joiner before a virama"
    assert of(f"{word}\u200d " * 50).look_alikes == 1 / 4
    assert of(f"{word} \u200b" * 50) == Disguise(), "unseen characters between words are no disguise"
