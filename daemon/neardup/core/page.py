"""A page's bytes -> its story's text -> its fingerprint: the one path for every caller.

Pure functions of bytes, called by reader processes, `check`, `compare` and the workers of a Spark cluster.  A page and
its text are marked with what is unusual about them, where there is enough of it.
"""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

from neardup.core.fingerprint.compute import fingerprint_text, text_hash
from neardup.core.text.decoding import MOST_CHARACTERS, REPLACEMENT, NoStoryText, decode, read_unparsed
from neardup.core.text.disguise import disguise
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import Extracted, extract_file, extract_page, opening, page_title
from neardup.core.text.normalize import tokens
from neardup.core.text.reading_order import in_reading_order, overrides_direction
from neardup.core.text.scripts import Characters, characters, script_of
from neardup.core.verify.shingled import Shingled, fingerprint_and_shingle_text, shingle_text
from neardup.records import Fingerprint, Limit, Mark, MarkReason, Marks, Skip, TextMeasures

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


@dataclass(frozen=True, slots=True)
class PageFingerprinted:
    """The fingerprint of a page's story; `size` is that of the page, in bytes.

    `title` is that of the page, as `core.text.html` finds it, and `opening` the story's first words if there is none;
    both are None where they were not asked for.
    `script` is that of most letters of the story, as `core.text.scripts` finds it, and `marks` what else is unusual.
    `measures` are None where they were not taken, and `rendered` is that of `core.text.html.Extracted`.
    """

    fingerprint: Fingerprint
    etag: str | None
    size: int
    title: str | None = None
    opening: str | None = None
    script: str | None = None
    marks: Marks = ()
    measures: TextMeasures | None = None
    rendered: str | None = None

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickle the fields positionally, in half the time of the default for data classes."""
        story = (self.title, self.opening, self.script, self.marks, self.measures, self.rendered)
        return type(self), (self.fingerprint, self.etag, self.size, *story)


@dataclass(frozen=True, slots=True)
class PageShingled:
    """A page's story in the form in which texts are compared; `text_hash` is that of its fingerprint."""

    text_hash: bytes
    text: Shingled


@dataclass(frozen=True, slots=True)
class PageText:
    """A page's story: its text and its normalised words, and what is unusual about the page."""

    text: str
    words: list[bytes]
    marks: Marks = ()


@dataclass(frozen=True, slots=True)
class PreparedStory:
    """A page's story as it is checked: its text, its fingerprint, the form in which it is compared, and its marks."""

    text: str
    fingerprint: Fingerprint
    shingled: Shingled
    marks: Marks = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The page yields no story, for a named reason: it is missing, too large, not a text, ...

    `marks` are what is unusual about what was read of it, and `rendered` is that of `core.text.html.Extracted`.
    """

    reason: Skip
    marks: Marks = ()
    rendered: str | None = None


def fingerprint_page(page: Page, extraction: Extraction) -> PageFingerprinted | Unreadable:
    """A page -> the fingerprint of its story."""
    story = text_of(page, extraction)
    return story if isinstance(story, Unreadable) else fingerprint_story(page, story)


class StoryText(NamedTuple):
    """The text of a page's story in UTF-8, the counts of its characters, and what is unusual about the page.

    `hidden` is the share of its characters that are hidden; it `is_broken` if it has replacement characters.
    `rendered` is that of `core.text.html.Extracted`.
    """

    utf8: bytes
    counts: Characters
    marks: Marks = ()
    hidden: float = 0.0
    is_broken: bool = False
    rendered: str | None = None

    @property
    def text(self) -> str:
        return self.utf8.decode()


def text_of(page: Page, extraction: Extraction, *, parsed: bool = True) -> StoryText | Unreadable:
    """A page -> its story; unless `parsed`, the text outside all tags, for a page that takes a parser too long."""
    try:
        found = _extract(page, extraction) if parsed else Extracted(_read_unparsed(page).encode(), Limit.BUDGET)
    except NoStoryText as error:
        return Unreadable(error.reason)
    return _story_text(found, page_marks(found, is_cut=page.is_cut))


def _story_text(found: Extracted, marks: Marks) -> StoryText:
    if found.counts is not None:
        return StoryText(found.utf8, found.counts, marks)
    utf8 = found.utf8
    if overrides_direction(utf8):
        utf8 = in_reading_order(found.text).encode()
    return StoryText(utf8, characters(utf8), marks, found.hidden, REPLACEMENT.encode() in utf8, found.rendered)


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


def fingerprint_story(page: Page, story: StoryText, *, named: bool = True) -> PageFingerprinted | Unreadable:
    """A page and its story -> the story's fingerprint, and what names the story if it is to be `named`."""
    marks = story.marks + text_marks(story.utf8, story.counts)
    fingerprint = fingerprint_text(story.utf8)
    words = 0 if fingerprint is None else fingerprint.words
    if fingerprint is None or (words < MIN_WORDS and is_too_short(words, story.text)):
        return _too_short(words, marks, story.rendered)
    title = page_title(page.body, page.content_type) if named and not page.is_text else None
    first_words = opening(story.text) if named and title is None else None
    script = script_of(story.counts)
    measures = _measures(story, words)
    return PageFingerprinted(
        fingerprint, page.etag, len(page.body), title, first_words, script, marks, measures, story.rendered
    )


def _measures(story: StoryText, words: int) -> TextMeasures:
    counts = story.counts
    visible = counts.length * counts.visible / counts.sampled
    return words / max(1, visible), counts.signs / max(1, counts.visible), float(story.is_broken), story.hidden


def shingle_story(text: str) -> PageShingled | Unreadable:
    """A story's text -> the form in which texts are compared, however short the text is."""
    shingled = shingle_text(text)
    return _too_short(0) if shingled is None else PageShingled(text_hash(shingled.normalised), shingled)


def split_story(text: str, marks: Marks = ()) -> PageText | Unreadable:
    """A story's text -> the text and its words; Unreadable if the words are too few for a fingerprint.

    `marks` are those of its page, to which those of the text are added.
    """
    words = tokens(text)
    marks += text_marks(text, characters(text))
    return _too_short(len(words), marks) if is_too_short(len(words), text) else PageText(text, words, marks)


def prepare_story(text: str, marks: Marks = ()) -> PreparedStory | Unreadable:
    """As `split_story`, for a check: by the native core, so that a long text holds up no other thread."""
    found = fingerprint_and_shingle_text(text)
    marks += text_marks(text, characters(text))
    if found is None:
        return _too_short(0, marks)
    fingerprint, shingled = found
    if is_too_short(fingerprint.words, text):
        return _too_short(fingerprint.words, marks)
    return PreparedStory(text, fingerprint, shingled, marks)


def split_file(body: bytes, extraction: Extraction) -> PageText | Unreadable:
    """The bytes of a page or of a plain text -> its story's text and words."""
    story = _story_of_file(body, extraction)
    return story if isinstance(story, Unreadable) else split_story(story.text, story.marks)


def prepare_file(body: bytes, extraction: Extraction) -> PreparedStory | Unreadable:
    """The bytes of a page or of a plain text -> its story, for a check."""
    story = _story_of_file(body, extraction)
    return story if isinstance(story, Unreadable) else prepare_story(story.text, story.marks)


def _story_of_file(body: bytes, extraction: Extraction) -> StoryText | Unreadable:
    try:
        found = _extract_or_read(lambda: extract_file(body, extraction), lambda: read_unparsed(decode(body, None)))
    except NoStoryText as error:
        return Unreadable(error.reason)
    return _story_text(found, page_marks(found))


def is_too_short(words: int, text: str) -> bool:
    """Whether a text with so many words is too short for a fingerprint."""
    return words < MIN_WORDS and sum(map(str.isalpha, text)) < MIN_LETTERS


def _too_short(words: int, marks: Marks = (), rendered: str | None = None) -> Unreadable:
    return Unreadable(Skip.TOO_SHORT if words else Skip.EMPTY, marks, rendered)


def page_marks(found: Extracted, *, is_cut: bool = False) -> Marks:
    """The marks of a page that was read, and of which perhaps only the beginning was there."""
    limit = Limit.SIZE if is_cut else found.limit
    truncated = () if limit is None else (Mark(MarkReason.TRUNCATED, limit),)
    return truncated + (_share(MarkReason.HIDDEN, found.hidden) if found.hidden > MOST_HIDDEN else ())


def text_marks(text: str | bytes, counts: Characters) -> Marks:
    """The marks of a text with these counts; bytes are UTF-8."""
    look_alikes, controls = disguise(text, counts)
    marks = _share(MarkReason.LOOK_ALIKES, look_alikes) if look_alikes else ()
    return marks + (_share(MarkReason.CONTROLS, controls) if controls else ())


def skip_marks(reason: Skip) -> Marks:
    """The mark of a story that was skipped for this reason, if it takes one."""
    return (Mark(MarkReason(reason), ""),) if reason in OF_SKIPS else ()


def _share(reason: MarkReason, share: float) -> Marks:
    return (Mark(reason, f"{100 * share:.0f} %"),)
