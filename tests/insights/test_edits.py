"""Laws: an edit does what its name says, in every language; what normalisation undoes leaves the words as they were,
and what it does not undo changes just so many; no edit tears a letter from its marks.
"""

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.core.text.html import Extraction, page_text
from neardup.core.text.normalize import tokens
from neardup.insights.evaluate import edits, pages
from neardup.insights.evaluate.around import Around, bare, paragraphs
from neardup.insights.evaluate.edits import EDITS, RATES, Edit
from neardup.records import Language

from tests.support.languages import ENGLISH, SAMPLED, TEXTS
from tests.support.sample_texts import AROUND, STORIES, chance, story

BY_NAME = {edit.name: edit for edit in EDITS}
WHOLE_PAGE = Extraction()


every_language = pytest.mark.parametrize("language", SAMPLED)
every_edit = pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
seeds = st.integers(0, 2**32)
rates = st.floats(0, 1)


def runs(words: list[str], length: int) -> set[tuple[str, ...]]:
    """Every run of so many words."""
    return {tuple(words[n : n + length]) for n in range(len(words) - length + 1)}


@every_language
@every_edit
def test_what_normalisation_undoes_leaves_the_words_as_they_were(language: Language, edit: Edit) -> None:
    for text in [TEXTS[language], *STORIES[language]]:
        copy = edit.apply(text, AROUND[language], chance())
        if copy is None:
            continue
        page = page_text(edit.page(copy).encode(), None, WHOLE_PAGE)
        assert tokens(page) == tokens(copy), "the page of a text holds its words"
        if edit.same_words:
            assert tokens(copy) == tokens(text)
            assert copy != text or edit.page is not pages.plain, "an edit that changes nothing is none"
        else:
            assert tokens(copy) != tokens(text)


@every_language
@every_edit
def test_no_edit_tears_a_letter_from_its_marks(language: Language, edit: Edit) -> None:
    copy = edit.apply(story(language), AROUND[language], chance())
    for word in (copy or "").split():
        assert not unicodedata.category(word[0]).startswith("M"), f"{word!r} begins with a mark"


@every_language
@every_edit
def test_the_same_chance_makes_the_same_copy(language: Language, edit: Edit) -> None:
    text = story(language)
    assert edit.apply(text, AROUND[language], chance(7)) == edit.apply(text, AROUND[language], chance(7))


ENGLISH_ONLY = {"look-alike letters, 10% of words", "letter case changed"}
NOT_ENGLISH = {"joiners inserted"}
EVERYWHERE = re.compile("replaced|foreign|story|alone|reordered|soft hyphens|markup")  # the rest hangs on the text


@every_language
@every_edit
def test_an_edit_finds_something_to_work_on(language: Language, edit: Edit) -> None:
    english = language is ENGLISH
    if EVERYWHERE.search(edit.name) or edit.name in (ENGLISH_ONLY if english else NOT_ENGLISH):
        assert edit.apply(story(language), AROUND[language], chance()) is not None


@every_language
@given(share=rates, seed=seeds)
def test_that_share_of_the_words_is_replaced(language: Language, share: float, seed: int) -> None:
    words = story(language).split()
    copy = edits.replaced(share)(story(language), AROUND[language], chance(seed))
    wanted = round(share * sum(bool(bare(word)) for word in words))
    changed = [(old, new) for old, new in zip(words, (copy or story(language)).split(), strict=True) if old != new]
    assert len(changed) == wanted
    assert all(bare(old).casefold() != bare(new).casefold() for old, new in changed), "each by another word"
    assert copy is not None or wanted == 0


@every_language
def test_replaced_words_are_of_other_stories(language: Language) -> None:
    others = {bare(word) for words in AROUND[language].others for word in words}
    copy = edits.replaced(0.2)(story(language), AROUND[language], chance())
    assert copy is not None
    new = {bare(word) for word in copy.split()} - {bare(word) for word in story(language).split()}
    assert new <= others


@pytest.mark.parametrize("rate", RATES)
def test_a_rate_is_in_the_name(rate: float) -> None:
    assert edits.replaced_name(rate) in BY_NAME


@every_language
@given(share=rates, seed=seeds)
def test_a_part_copied_is_so_many_consecutive_words(language: Language, share: float, seed: int) -> None:
    words, host = story(language).split(), list(AROUND[language].host)
    length = round(share * len(words))
    alone = edits.part_alone(share)(story(language), AROUND[language], chance(seed))
    assert alone is not None
    assert tuple(alone.split()) in runs(words, length), "a part alone"
    within = edits.part_within(share)(story(language), AROUND[language], chance(seed))
    assert within is not None
    copy = within.split()
    assert len(copy) == len(words), "a part within another takes the place of as many words"
    assert runs(copy, length) & runs(words, length), "and is whole"
    assert sum(a != b for a, b in zip(copy, AROUND[language].foreign, strict=False)) <= length, "the rest is foreign"
    into = edits.part_into(share)(story(language), AROUND[language], chance(seed))
    assert into is not None
    copy = into.split()
    assert len(copy) == len(host) + length
    assert runs(copy, length) & runs(words, length), "a part put into another is whole"
    assert not Counter(host) - Counter(copy), "and so is the other"


@every_language
@given(share=rates)
def test_foreign_text_stands_before_or_behind(language: Language, share: float) -> None:
    words = story(language).split()
    foreign = list(AROUND[language].foreign[: round(share * len(words))])
    behind = edits.appended(share)(story(language), AROUND[language], chance())
    before = edits.prepended(share)(story(language), AROUND[language], chance())
    assert behind is not None
    assert behind.split() == words + foreign
    assert before is not None
    assert before.split() == foreign + words


@every_language
def test_four_characters_are_renamed_wherever_they_stand(language: Language) -> None:
    # Each story of the samples is short: a made-up one, in which four words stand often.
    names = list(dict.fromkeys(bare(word) for word in story(language).split() if len(bare(word)) > 2))[:4]
    text = paragraphs([word for n, word in enumerate(story(language).split()) for word in (word, names[n % 4] + ",")])
    common = frozenset(bare(w).casefold() for w in story(language).split()) - {name.casefold() for name in names}
    near = Around(language, AROUND[language].others, AROUND[language].host, AROUND[language].foreign, common)
    copy = edits.renamed(text, near, chance())
    assert copy is not None
    renamed: dict[str, set[str]] = {}
    for old, new in zip(text.split(), copy.split(), strict=True):
        if old != new:
            renamed.setdefault(bare(old), set()).add(bare(new))
    assert set(renamed) == set(names)
    assert all(len(new) == 1 for new in renamed.values()), "each has one new name"
    assert len(set.union(*renamed.values())) == 4, "no two the same"
    assert not set(names) & {bare(word) for word in copy.split()}, "no old name is left"


@every_language
def test_reordering_keeps_all_that_is_said(language: Language) -> None:
    for text in (story(language), " ".join(story(language).split())):
        copy = edits.reordered(text, AROUND[language], chance())
        assert copy is not None
        assert copy.split() != text.split()
        assert Counter(copy.split()) == Counter(text.split())


def test_what_has_one_sentence_is_not_reordered() -> None:
    assert edits.reordered("a b c d", AROUND[ENGLISH], chance()) is None


@every_language
def test_an_ornate_page_shares_no_markup_with_a_plain_one(language: Language) -> None:
    ornate = pages.ornate(story(language))
    assert "<p" not in ornate
    assert ornate.isascii(), "every other letter is a character reference"
