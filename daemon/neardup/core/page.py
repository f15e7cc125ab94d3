"""A page's bytes -> its story's text -> its fingerprint: the one path for every caller.

Pure functions of bytes, called by reader processes, `check`, `compare` and the workers of a Spark cluster.
"""

from dataclasses import dataclass
from typing import Self

from neardup.core.fingerprint.compute import fingerprint_text, text_hash
from neardup.core.text.html import Extraction, NoStoryText, decode, file_text, page_text
from neardup.core.text.normalize import tokens
from neardup.core.text.title import opening, page_title
from neardup.core.verify.scores import Shingled, shingled
from neardup.records import Fingerprint, Skip

MIN_WORDS = 10  # shorter pages are headings and notices, which are alike without being copied


@dataclass(frozen=True, slots=True)
class Page:
    """A page: its body, and the headers that its store sent with it.

    `is_text` says that the body is known to be the story's text, not markup.
    """

    body: bytes
    content_type: str | None = None
    etag: str | None = None
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class PageFingerprinted:
    """The fingerprint of a page's story; `size` is that of the page, in bytes.

    `title` is that of the page, as `core.text.title` finds it, and `opening` the story's first words if there is none.
    """

    fingerprint: Fingerprint
    etag: str | None
    size: int
    title: str | None = None
    opening: str | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickle the fields positionally, in half the time of the default for data classes."""
        return type(self), (self.fingerprint, self.etag, self.size, self.title, self.opening)


@dataclass(frozen=True, slots=True)
class PageShingled:
    """A page's story in the form in which texts are compared; `text_hash` is that of its fingerprint."""

    text_hash: bytes
    text: Shingled


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's story: its text and its normalised words."""

    text: str
    words: list[bytes]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The page yields no story, for a named reason: it is missing, too large, not a text, ..."""

    reason: Skip


def fingerprint_page(page: Page, extraction: Extraction) -> PageFingerprinted | Unreadable:
    """A page -> the fingerprint of its story."""
    text = text_of(page, extraction)
    return text if isinstance(text, Unreadable) else fingerprint_story(page, text)


def text_of(page: Page, extraction: Extraction) -> str | Unreadable:
    """A page -> the text of its story."""
    try:
        return decode(page.body, None) if page.is_text else page_text(page.body, page.content_type, extraction)
    except NoStoryText as error:
        return Unreadable(error.reason)


def fingerprint_story(page: Page, text: str) -> PageFingerprinted | Unreadable:
    """A page and the text of its story -> the story's fingerprint."""
    fingerprint = fingerprint_text(text)
    words = 0 if fingerprint is None else fingerprint.words
    if fingerprint is None or words < MIN_WORDS:
        return _too_short(words)
    title = None if page.is_text else page_title(page.body, page.content_type)
    return PageFingerprinted(fingerprint, page.etag, len(page.body), title, opening(text) if title is None else None)


def shingle_story(text: str) -> PageShingled | Unreadable:
    """A story's text -> the form in which texts are compared, however short the text is."""
    words = tokens(text)
    return PageShingled(text_hash(words), shingled(words)) if words else _too_short(0)


def split_story(text: str) -> PageText | Unreadable:
    """A story's text -> the text and its words; Unreadable if the words are too few for a fingerprint."""
    words = tokens(text)
    return _too_short(len(words)) if len(words) < MIN_WORDS else PageText(text, words)


def split_file(body: bytes, extraction: Extraction) -> PageText | Unreadable:
    """The bytes of a page or of a plain text -> its story's text and words."""
    try:
        text = file_text(body, extraction)
    except NoStoryText as error:
        return Unreadable(error.reason)
    return split_story(text)


def _too_short(words: int) -> Unreadable:
    return Unreadable(Skip.TOO_SHORT if words else Skip.EMPTY)
