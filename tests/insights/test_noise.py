"""Laws of the edits of code points: digits, letters, joiners, chillus and nuktas are respelled and restored."""

import unicodedata

import pytest
from neardup.core.text.codepoints import NUKTAS
from neardup.insights import edits
from neardup.records import Language

from tests.support.languages import ENGLISH, HINDI, MALAYALAM
from tests.support.sample_texts import AROUND, rng, story


@pytest.mark.parametrize("language", edits.SCRIPT_BLOCKS)
def test_ascii_and_script_digits_are_exchanged(language: Language) -> None:
    script = "".join(chr(edits.SCRIPT_BLOCKS[language] + edits.DIGITS_AT + n) for n in range(10))
    assert all(unicodedata.decimal(digit) == n for n, digit in enumerate(script))
    assert edits.swap_digits(f"0123456789 {script}", AROUND[language], rng()) == f"{script} 0123456789"


def test_a_tenth_of_the_words_get_cyrillic_look_alikes() -> None:
    words = "ax bx cx dx ex ox px sx xx yx"
    copy = edits.replace_by_look_alikes(words, AROUND[ENGLISH], rng())
    assert copy is not None
    assert sum(a != b for a, b in zip(words.split(), copy.split(), strict=True)) == 1, "one word in ten must change"
    names = {unicodedata.name(other) for _, other in _look_alike_letters()}
    assert all(name.startswith("CYRILLIC") for name in names)


def _look_alike_letters() -> list[tuple[str, str]]:
    return [(chr(old), chr(new) if isinstance(new, int) else new) for old, new in edits.LOOK_ALIKES.items()]


@pytest.mark.parametrize("language", edits.SCRIPT_BLOCKS)
def test_a_joiner_follows_each_virama(language: Language) -> None:
    virama = chr(edits.SCRIPT_BLOCKS[language] + edits.VIRAMA_AT)
    assert "VIRAMA" in unicodedata.name(virama)
    copy = edits.insert_joiners(story(language), AROUND[language], rng())
    assert copy is not None
    assert copy.count(virama) == copy.count(virama + edits.ZWNJ) + copy.count(virama + edits.ZWJ)
    assert (
        edits.remove_joiners(copy, AROUND[language], rng())
        == story(language).replace("\u200c", "").replace("\u200d", "")
        or language is MALAYALAM
    )


def test_joiner_edits_leave_chillus_intact() -> None:
    around, letters = AROUND[MALAYALAM], "അവൻ കാൽ വാൾ അവർ കൺ"
    sequences = edits.split_chillus(letters, around, rng())
    assert sequences is not None
    assert edits.remove_joiners(sequences, around, rng()) is None
    assert edits.insert_joiners(sequences, around, rng()) is None
    assert edits.join_chillus(sequences, around, rng()) == letters


@pytest.mark.parametrize("composed", edits.COMPOSED.values(), ids=unicodedata.name)
def test_nukta_letters_are_decomposed_composed_and_dropped(composed: str) -> None:
    around = AROUND[HINDI]
    decomposed = edits.decompose_nukta(composed, around, rng())
    assert decomposed is not None
    base, nukta = decomposed[0], decomposed[1]
    assert base not in NUKTAS
    assert nukta in NUKTAS
    assert edits.compose_nukta(decomposed, around, rng()) == composed
    assert edits.drop_nukta(composed, around, rng()) == base
    assert edits.drop_nukta(decomposed, around, rng()) == base
