"""Texts of the sample stories, and the page text around them."""

import random

from neardup.core.text.html import Extraction, visible_text
from neardup.insights.evaluate.around import Around, bare
from neardup.records import Language

from tests.support.paths import SAMPLES


def texts_of(language: Language) -> list[str]:
    """The sample stories, longest first."""
    pages = sorted((SAMPLES / "stories" / language).glob("*.html"))
    texts = [
        visible_text(page.read_text(encoding="utf-8"), Extraction("article .story, div.post-body")) for page in pages
    ]
    return sorted(texts, key=len, reverse=True)


STORIES = {language: texts_of(language) for language in Language}


def around(language: Language) -> Around:
    """The page text around the second story; the longest story is the host."""
    words = [text.split() for text in STORIES[language]]
    others = [words[0], *words[2:]]
    common = frozenset(bare(word).casefold() for word in words[2]) & {bare(word).casefold() for word in words[3]}
    return Around(language, others, words[0], words[0] + words[2], common)


AROUND = {language: around(language) for language in Language}


def story(language: Language) -> str:
    return STORIES[language][1]


def chance(seed: int = 1) -> random.Random:
    return random.Random(seed)
