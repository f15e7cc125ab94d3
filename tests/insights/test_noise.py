"""Laws of the edits of code points: digits, letters, joiners, chillu and nukta are written another way, and back."""

import unicodedata

import pytest
from neardup.core.text.codepoints import NUKTAS
from neardup.insights.evaluate import noise
from neardup.records import Language

from tests.support.languages import ENGLISH, HINDI, MALAYALAM
from tests.support.sample_texts import AROUND, chance, story


@pytest.mark.parametrize("language", noise.BLOCKS)
def test_digits_are_those_of_the_script_and_back(language: Language) -> None:
    script = "".join(chr(noise.BLOCKS[language] + noise.DIGITS_AT + n) for n in range(10))
    assert all(unicodedata.decimal(digit) == n for n, digit in enumerate(script))
    assert noise.digits(f"0123456789 {script}", AROUND[language], chance()) == f"{script} 0123456789"


def test_look_alikes_look_alike_and_are_other_letters() -> None:
    words = "ax bx cx dx ex ox px sx xx yx"
    copy = noise.look_alikes(words, AROUND[ENGLISH], chance())
    assert copy is not None
    assert sum(a != b for a, b in zip(words.split(), copy.split(), strict=True)) == 1, "in a tenth of the words"
    names = {unicodedata.name(other) for _, other in _look_alike_letters()}
    assert all(name.startswith("CYRILLIC") for name in names)


def _look_alike_letters() -> list[tuple[str, str]]:
    return [(chr(old), chr(new) if isinstance(new, int) else new) for old, new in noise.LOOK_ALIKES.items()]


@pytest.mark.parametrize("language", noise.BLOCKS)
def test_a_joiner_stands_behind_each_virama(language: Language) -> None:
    virama = chr(noise.BLOCKS[language] + noise.VIRAMA_AT)
    assert "VIRAMA" in unicodedata.name(virama)
    copy = noise.joiners_inserted(story(language), AROUND[language], chance())
    assert copy is not None
    assert copy.count(virama) == copy.count(virama + noise.ZWNJ) + copy.count(virama + noise.ZWJ)
    assert (
        noise.joiners_removed(copy, AROUND[language], chance())
        == story(language).replace("\u200c", "").replace("\u200d", "")
        or language is MALAYALAM
    )


def test_a_chillu_is_never_broken() -> None:
    near, letters = AROUND[MALAYALAM], "അവൻ കാൽ വാൾ അവർ കൺ"
    sequences = noise.chillu_sequences(letters, near, chance())
    assert sequences is not None
    assert noise.joiners_removed(sequences, near, chance()) is None
    assert noise.joiners_inserted(sequences, near, chance()) is None
    assert noise.chillu_letters(sequences, near, chance()) == letters


@pytest.mark.parametrize("composed", noise.COMPOSED.values(), ids=unicodedata.name)
def test_nukta_letters_are_written_one_way_or_the_other(composed: str) -> None:
    near = AROUND[HINDI]
    two = noise.nukta_decomposed(composed, near, chance())
    assert two is not None
    assert two[0] not in NUKTAS
    assert two[1] in NUKTAS
    assert noise.nukta_composed(two, near, chance()) == composed
    assert noise.nukta_dropped(composed, near, chance()) == noise.nukta_dropped(two, near, chance()) == two[0]
