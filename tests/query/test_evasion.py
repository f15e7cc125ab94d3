"""Law: a copy is found however it is disguised, in every language, and its page is never skipped."""

import numpy as np
from neardup.core.page import Page, PageStory, extract_story
from neardup.core.text.extraction import Extraction
from neardup.nomination.in_memory import nominate_pairs
from neardup.query.texts import DETECTION, NotComparable, PairVerifier, prepare
from neardup.records import Language

from tests.support.disguises import DISGUISES, Disguise
from tests.support.disguises_by_markup import BY_ELEMENT, BY_ORDER, HIDDEN_BY_STYLE
from tests.support.random_pages import STORY, in_template
from tests.support.sample_texts import STORIES
from tests.support.sampling import some_of

NO_COMMON = np.empty(0, np.uint32)
verifier = PairVerifier()


def verdict(disguise: Disguise, language: Language, *, in_site: bool = False) -> str:
    """The kind of the copy of a story of this language, alone or on the page of a site, or why there is none."""
    story = STORIES[language][0]
    page = disguise.page(story, language)
    body, extraction = (in_template(page), STORY) if in_site else (page, Extraction())
    shown = extract_story(Page(body.encode()), extraction)
    if not isinstance(shown, PageStory):
        return f"skipped as {shown.reason}"
    try:
        pair = prepare("story", story, language), prepare("copy", shown.text.written, disguise.label or language)
    except NotComparable as error:
        return str(error)
    if not nominate_pairs(pair, DETECTION).pairs:
        return "not nominated"
    return next((copy.kind for copy in verifier.find_copies([pair], NO_COMMON)), "no copy")


def test_a_disguised_copy_is_found_in_every_language() -> None:
    missed = {
        f"{disguise.family}: {disguise.name}, in {language}": found
        for number, disguise in enumerate(DISGUISES)
        for language in some_of(disguise.languages, number, 1)
        if " " in (found := verdict(disguise, language))
    }
    assert not missed


def test_a_copy_is_found_however_its_page_is_made() -> None:
    missed = {
        f"{disguise.family}: {disguise.name}, in {language}": found
        for number, disguise in enumerate((*HIDDEN_BY_STYLE, *BY_ELEMENT, *BY_ORDER))
        for language in some_of(disguise.languages, number, 1)  # the mechanisms are the same in all
        if " " in (found := verdict(disguise, language))
    }
    assert not missed


def test_a_copy_is_found_within_the_page_of_a_site() -> None:
    missed = {
        f"{disguise.family}: {disguise.name}, in {language}": found
        for number, disguise in enumerate((*HIDDEN_BY_STYLE, *BY_ELEMENT, *BY_ORDER))
        for language in some_of(disguise.languages, number + 1, 1)
        if " " in (found := verdict(disguise, language, in_site=True))
    }
    assert not missed
