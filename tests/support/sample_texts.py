"""Texts of the sample stories, the material that edits of them draw on, and transliteration between scripts."""

import random

from neardup.core.languages import SHIPPED
from neardup.core.text.consonants import BLOCKS
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.insights import edits
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


def transliterated(text: str, source: Language, target: Language) -> str:
    """A text with each letter and vowel sign of one script replaced by the one at its place in another."""
    return edits.transliterate_block(text, _block_of(source), _block_of(target))


def _block_of(language: Language) -> int:
    return next(start for letter in SHIPPED[language].golden if (start := ord(letter) & ~0x7F) in BLOCKS)
