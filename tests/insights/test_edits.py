"""Laws: an edit does what its name says, in every language; edits that normalisation undoes leave the words unchanged,
and others change the requested share of the words; no edit separates a letter from its marks; digits, letters, joiners,
chillus and nuktas are respelled and restored.
"""

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.text.codepoints import NUKTAS
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.normalize import tokenize
from neardup.insights import edits
from neardup.insights.edits import EDITS, RATES, OtherStories, strip_signs, write_paragraphs
from neardup.records import Language

from tests.support.languages import ENGLISH, HINDI, MALAYALAM, SAMPLED, TEXTS
from tests.support.sample_texts import AROUND, rng, story
from tests.support.sampling import crossed

BY_NAME = {edit.name: edit for edit in EDITS}
WHOLE_PAGE = Extraction()


every_language = pytest.mark.parametrize("language", SAMPLED)
seeds = st.integers(0, 2**32)
rates = st.floats(0, 1)


def runs(words: list[str], length: int) -> set[tuple[str, ...]]:
    """Every run of `length` words."""
    return {tuple(words[n : n + length]) for n in range(len(words) - length + 1)}


def test_edits_that_normalisation_undoes_keep_the_words() -> None:
    for edit, language in crossed(EDITS, SAMPLED, each=2):
        tried = f"{edit.name} in {language}"
        for text in (TEXTS[language], story(language)):
            copy = edit.apply(text, AROUND[language], rng())
            if copy is None:
                continue
            page = extract_page_text(edit.page(copy).encode(), None, WHOLE_PAGE)
            assert tokenize(page) == tokenize(copy), f"{tried}: the page has other words than the text"
            assert (tokenize(copy) == tokenize(text)) is edit.same_words, tried
            assert copy != text or edit.page is not edits.write_plain, f"{tried}: the edit changed nothing"


def test_no_edit_separates_a_letter_from_its_marks() -> None:
    for edit, language in crossed(EDITS, SAMPLED, each=2):
        copy = edit.apply(story(language), AROUND[language], rng())
        for word in (copy or "").split():
            tried = f"{edit.name} in {language}: {word!r}"
            assert not unicodedata.category(word[0]).startswith("M"), f"{tried} begins with a mark"


def test_the_same_seed_makes_the_same_copy() -> None:
    for edit, language in crossed(EDITS, SAMPLED):
        first, second = (edit.apply(story(language), AROUND[language], rng(7)) for _ in range(2))
        assert first == second, f"{edit.name} in {language}"


ENGLISH_ONLY = {"look-alike letters, 10% of words", "letter case changed"}
NOT_ENGLISH = {"joiners inserted"}
ALWAYS = re.compile(
    "of words replaced|foreign|story|alone|reordered|soft hyphens|markup"
)  # the others depend on the text


def test_an_edit_applies_to_the_sample_story() -> None:
    for edit, language in crossed(EDITS, SAMPLED, each=3):
        if ALWAYS.search(edit.name) or edit.name in (ENGLISH_ONLY if language is ENGLISH else NOT_ENGLISH):
            assert edit.apply(story(language), AROUND[language], rng()) is not None, f"{edit.name} in {language}"


@every_language
@given(share=rates, seed=seeds)
def test_the_requested_share_of_the_words_is_replaced(language: Language, share: float, seed: int) -> None:
    words = story(language).split()
    copy = edits.replace_words(share)(story(language), AROUND[language], rng(seed))
    expected = round(share * sum(bool(strip_signs(word)) for word in words))
    changed = [(old, new) for old, new in zip(words, (copy or story(language)).split(), strict=True) if old != new]
    assert len(changed) == expected
    assert all(strip_signs(old).casefold() != strip_signs(new).casefold() for old, new in changed), "replaced by itself"
    assert copy is not None or expected == 0


@every_language
def test_replacement_words_come_from_other_stories(language: Language) -> None:
    others = {strip_signs(word) for words in AROUND[language].stories for word in words}
    copy = edits.replace_words(0.2)(story(language), AROUND[language], rng())
    assert copy is not None
    new = {strip_signs(word) for word in copy.split()} - {strip_signs(word) for word in story(language).split()}
    assert new <= others


@pytest.mark.parametrize("rate", RATES)
def test_every_rate_has_an_edit_named_after_it(rate: float) -> None:
    assert edits.name_replaced(rate) in BY_NAME


@every_language
@given(share=rates, seed=seeds)
def test_a_copied_part_is_a_run_of_the_requested_length(language: Language, share: float, seed: int) -> None:
    words, host = story(language).split(), list(AROUND[language].host)
    length = round(share * len(words))
    alone = edits.keep_part(share)(story(language), AROUND[language], rng(seed))
    assert alone is not None
    assert tuple(alone.split()) in runs(words, length), "a part alone is not a run of the story"
    within = edits.replace_with_part(share)(story(language), AROUND[language], rng(seed))
    assert within is not None
    copy = within.split()
    assert len(copy) == len(words), "a part within another text must replace as many words"
    assert runs(copy, length) & runs(words, length), "a part within another text is not a run of the story"
    assert sum(a != b for a, b in zip(copy, AROUND[language].foreign, strict=False)) <= length, (
        "the rest must be foreign"
    )
    into = edits.insert_part(share)(story(language), AROUND[language], rng(seed))
    assert into is not None
    copy = into.split()
    assert len(copy) == len(host) + length
    assert runs(copy, length) & runs(words, length), "a part inserted into another text is not a run of the story"
    assert not Counter(host) - Counter(copy), "the host lost words"


@every_language
@given(share=rates)
def test_foreign_text_is_added_before_or_after_the_story(language: Language, share: float) -> None:
    words = story(language).split()
    foreign = list(AROUND[language].foreign[: round(share * len(words))])
    after = edits.append_foreign_text(share)(story(language), AROUND[language], rng())
    before = edits.prepend_foreign_text(share)(story(language), AROUND[language], rng())
    assert after is not None
    assert after.split() == words + foreign
    assert before is not None
    assert before.split() == foreign + words


@every_language
def test_four_characters_are_renamed_everywhere(language: Language) -> None:
    # The sample stories are too short, so four names are inserted, each after every fourth word.
    names = list(dict.fromkeys(strip_signs(word) for word in story(language).split() if len(strip_signs(word)) > 2))[:4]
    text = write_paragraphs(
        [word for n, word in enumerate(story(language).split()) for word in (word, names[n % 4] + ",")]
    )
    common = frozenset(strip_signs(w).casefold() for w in story(language).split()) - {name.casefold() for name in names}
    near = OtherStories(language, AROUND[language].stories, AROUND[language].host, AROUND[language].foreign, common)
    copy = edits.rename_characters(text, near, rng())
    assert copy is not None
    renamed: dict[str, set[str]] = {}
    for old, new in zip(text.split(), copy.split(), strict=True):
        if old != new:
            renamed.setdefault(strip_signs(old), set()).add(strip_signs(new))
    assert set(renamed) == set(names)
    assert all(len(new) == 1 for new in renamed.values()), "a character has several new names"
    assert len(set.union(*renamed.values())) == 4, "two characters have the same new name"
    assert not set(names) & {strip_signs(word) for word in copy.split()}, "an old name is left"


@every_language
def test_reordering_keeps_all_words(language: Language) -> None:
    for text in (story(language), " ".join(story(language).split())):
        copy = edits.reorder_parts(text, AROUND[language], rng())
        assert copy is not None
        assert copy.split() != text.split()
        assert Counter(copy.split()) == Counter(text.split())


def test_a_text_of_one_sentence_is_not_reordered() -> None:
    assert edits.reorder_parts("a b c d", AROUND[ENGLISH], rng()) is None


@every_language
def test_an_ornate_page_shares_no_markup_with_a_plain_one(language: Language) -> None:
    ornate = edits.write_ornate(story(language))
    assert "<p" not in ornate
    assert ornate.isascii(), "every other letter must be a character reference"


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
