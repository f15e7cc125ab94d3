"""A page's bytes -> its story's text -> its fingerprint: the one path for every caller.

Pure functions of bytes, called by reader processes, `check`, `compare` and the workers of a Spark cluster.  A page and
its text are marked with what is unusual about them, where there is enough of it.
"""

import traceback
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.text.decoding import MOST_CHARACTERS, REPLACEMENT, NoStoryText, decode, read_unparsed
from neardup.core.text.disguise import make_share_mark
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import Extracted, cut_opening, extract_file, extract_page, find_title
from neardup.core.text.reading_order import overrides_direction, put_in_reading_order
from neardup.core.text.scripts import find_script
from neardup.core.verify.text import Text
from neardup.records import Fingerprint, Limit, Mark, MarkReason, Marks, Rendering, Skip, TextMeasures

MOST_HIDDEN = 0.5  # of the characters of a page; one in a hundred real pages hides more
OF_SKIPS = {Skip.EMPTY, Skip.NOT_TEXT, Skip.OVER_BUDGET}

MIN_WORDS = 10  # shorter pages are headings and notices, which are alike without being copied
MIN_LETTERS = 100  # marks apart; a page with so many in fewer words is a story without its spaces


class Page(NamedTuple):
    """A page: its body, and the headers that its store sent with it.

    `is_text` says that the body is known to be the story's text, not markup; `is_cut` that it is only the beginning of
    one that is too large.
    """

    body: bytes
    content_type: str | None = None
    etag: str | None = None
    is_text: bool = False
    is_cut: bool = False


class PageFingerprinted(Struct, frozen=True):
    """The fingerprint of a page's story; `size` is that of the page, in bytes.

    `title` is that of the page, as `core.text.html` finds it, and `opening` the story's first words if there is none;
    both are None where they were not asked for.
    `script` is that of most letters of the story, as `core.text.scripts` finds it, and `marks` what else is unusual.
    `measures` are None where they were not taken, and `rendered` is that of `core.text.html.Extracted`.
    `text_sha256` is `Text.sha256`, None where only the fingerprint is at hand.
    """

    fingerprint: Fingerprint
    etag: str | None
    size: int
    title: str | None = None
    opening: str | None = None
    script: str | None = None
    marks: Marks = ()
    measures: TextMeasures | None = None
    rendered: Rendering | None = None
    text_sha256: bytes | None = None


class Unreadable(Struct, frozen=True):
    """The page yields no story, for a named reason: it is missing, too large, not a text, ...

    `marks` are what is unusual about what was read of it, and `rendered` is that of `core.text.html.Extracted`.
    """

    reason: Skip
    marks: Marks = ()
    rendered: Rendering | None = None


class PageStory(NamedTuple):
    """The text of a page's story, and how it was found.

    `hidden` is the share of its characters that are hidden; it `is_broken` if it has replacement characters.
    `rendered` is that of `core.text.html.Extracted`.
    """

    text: Text
    hidden: float = 0.0
    is_broken: bool = False
    rendered: Rendering | None = None


def extract_story(page: Page, extraction: Extraction, *, parsed: bool = True) -> PageStory | Unreadable:
    """A page -> its story; unless `parsed`, the text outside all tags, for a page that takes a parser too long."""
    try:
        found = _extract(page, extraction) if parsed else Extracted(_read_unparsed(page).encode(), Limit.BUDGET)
    except NoStoryText as error:
        return Unreadable(error.reason)
    return _make_page_story(found, mark_page(found, is_cut=page.is_cut))


def _make_page_story(found: Extracted, marks: Marks) -> PageStory:
    utf8 = found.utf8
    if found.counts is not None:
        text = Text(utf8, marks)
        text.counts = found.counts
        return PageStory(text, found.hidden, rendered=found.rendered)
    if overrides_direction(utf8):
        utf8 = put_in_reading_order(found.text).encode()
    return PageStory(Text(utf8, marks), found.hidden, REPLACEMENT.encode() in utf8, found.rendered)


def _extract(page: Page, extraction: Extraction) -> Extracted:
    if page.is_text:
        return Extracted(decode(page.body, None).encode())
    return _extract_or_read(
        lambda: extract_page(page.body, page.content_type, extraction), lambda: _read_unparsed(page)
    )


def _read_unparsed(page: Page) -> str:
    text = decode(page.body, None if page.is_text else page.content_type)
    return text[:MOST_CHARACTERS] if page.is_text else read_unparsed(text)


def _extract_or_read(extract: Callable[[], Extracted], unparsed: Callable[[], str]) -> Extracted:
    """What `extract` returns, or where it raises an unexpected error, what `unparsed` does: a copy must not hide by it.

    Raises NoStoryText, and MemoryError, which is not the page's own.
    """
    try:
        return extract()
    except (NoStoryText, MemoryError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is
        traceback.print_exception(error)
        return Extracted(unparsed().encode(), Limit.ERROR)


def fingerprint_story(page: Page, story: PageStory, *, named: bool = True) -> PageFingerprinted | Unreadable:
    """A page and its story -> the story's fingerprint, and what names the story if it is to be `named`."""
    text = story.text
    fingerprint = fingerprint_text(text.given)
    words = 0 if fingerprint is None else fingerprint.words
    if fingerprint is None or is_too_short(words, text):
        return _refuse_short(words, text.marks, story.rendered)
    title = find_title(page.body, page.content_type) if named and not page.is_text else None
    first_words = cut_opening(text.written) if named and title is None else None
    script = find_script(text.counts)
    measures = _measure(story, words)
    about = title, first_words, script, text.marks, measures, story.rendered
    return PageFingerprinted(fingerprint, page.etag, len(page.body), *about, text.sha256)


def _measure(story: PageStory, words: int) -> TextMeasures:
    counts = story.text.counts
    visible = counts.length * counts.visible / counts.sampled
    return words / max(1, visible), counts.signs / max(1, counts.visible), float(story.is_broken), story.hidden


def refuse_short(text: Text) -> Text | Unreadable:
    """A text, if it has enough words for a fingerprint."""
    words = len(text.word_hashes)
    return _refuse_short(words, text.marks) if is_too_short(words, text) else text


def prepare(text: Text) -> Text | Unreadable:
    """As `refuse_short`, with all that a check needs made."""
    found = refuse_short(text)
    return found.prepare() if isinstance(found, Text) else found


def make_comparable(text: Text) -> Text | Unreadable:
    """What a text is compared by, however short it is."""
    return text.keep_compared() if len(text.word_hashes) else _refuse_short(0)


def read_file(body: bytes, extraction: Extraction) -> Text | Unreadable:
    """The bytes of a page or of a plain text -> its story's text."""
    try:
        found = _extract_or_read(lambda: extract_file(body, extraction), lambda: read_unparsed(decode(body, None)))
    except NoStoryText as error:
        return Unreadable(error.reason)
    return refuse_short(_make_page_story(found, mark_page(found)).text)


def is_too_short(words: int, text: Text) -> bool:
    """Whether a text with so many words is too short for a fingerprint."""
    return not words or (words < MIN_WORDS and sum(map(str.isalpha, text.written)) < MIN_LETTERS)


def _refuse_short(words: int, marks: Marks = (), rendered: Rendering | None = None) -> Unreadable:
    return Unreadable(Skip.TOO_SHORT if words else Skip.EMPTY, marks, rendered)


def mark_page(found: Extracted, *, is_cut: bool = False) -> Marks:
    """The marks of a page that was read, and of which perhaps only the beginning was there."""
    limit = Limit.SIZE if is_cut else found.limit
    truncated = () if limit is None else (Mark(MarkReason.TRUNCATED, limit),)
    return truncated + (make_share_mark(MarkReason.HIDDEN, found.hidden) if found.hidden > MOST_HIDDEN else ())


def skip_marks(reason: Skip) -> Marks:
    """The mark of a story that was skipped for this reason, if it takes one."""
    return (Mark(MarkReason(reason), ""),) if reason in OF_SKIPS else ()
