"""Texts of the sample stories, and the material that edits of them draw on."""

import random

from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.insights.edits import OtherStories, strip_signs
from neardup.records import Language

from tests.support.languages import SAMPLED
from tests.support.paths import SAMPLES


def texts_of(language: Language) -> list[str]:
    """The sample stories, longest first."""
    pages = sorted((SAMPLES / "stories" / language).glob("*.html"))
    texts = [
        extract_visible_text(page.read_text(encoding="utf-8"), Extraction("article .story, div.post-body"))
        for page in pages
    ]
    return sorted(texts, key=len, reverse=True)


STORIES = {language: texts_of(language) for language in SAMPLED}


def around(language: Language) -> OtherStories:
    """The `OtherStories` of the second-longest story; the longest is the host."""
    words = [text.split() for text in STORIES[language]]
    others = [words[0], *words[2:]]
    common = frozenset(strip_signs(word).casefold() for word in words[2]) & {
        strip_signs(word).casefold() for word in words[3]
    }
    return OtherStories(language, others, words[0], words[0] + words[2], common)


AROUND = {language: around(language) for language in SAMPLED}


def story(language: Language) -> str:
    """The second-longest sample story."""
    return STORIES[language][1]


def rng(seed: int = 1) -> random.Random:
    return random.Random(seed)
