"""The records that flow through the pipeline, of stories and of pairs of them: frozen, slotted.

Times are whole milliseconds since 1970 in UTC; the functions at the end write and read them as text.
"""

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Any, Literal, NamedTuple, NewType, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

Language = NewType("Language", str)  # a registered language's name: see neardup.core.languages

SUBMITTED = "submitted://"  # before the file name of a submitted page; no listed path has an empty segment
TEXT_ENDING = ".txt"  # of a submitted page that is a plain text, not markup
CACHED_TIMES = 1_000  # many rows of an export have the same
FIRST_ID_OF_NAMES = 2**62  # the integers that are made from names begin here; those that platforms count are smaller

ShownId = int | str  # the id of a story as its listing has it: an integer, or a name


class Skip(StrEnum):
    """Why a story has no new fingerprint.  The value is a metric label, and the reason in log lines."""

    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"  # the ledger holds a later version of the story
    FORGOTTEN = "forgotten"  # the story was forgotten on request
    MISSING = "missing"  # the object does not exist
    EMPTY = "empty"  # the object has no bytes, or the page has no words
    NOT_TEXT = "not_text"  # the object is an image, an archive or the like
    NO_BODY = "no_body"  # nothing on the page matches extract.body
    TOO_SHORT = "too_short"
    OVER_BUDGET = "over_budget"  # reading the page exceeds the limits of time or memory, even without its markup


class Dead(StrEnum):
    """Why a row or a story was dead-lettered.  The value is a metric label, and the reason in log lines."""

    BAD_ROW = "bad_row"
    BAD_ID = "bad_id"
    BAD_LANGUAGE = "bad_language"
    BAD_TIME = "bad_time"
    BAD_PATH = "bad_path"
    DUPLICATE_ID = "duplicate_id"  # the listing has another page under the same id
    STORE_ERROR = "store_error"
    FORBIDDEN = "forbidden"
    CRASHED = "crashed"  # processing the story raised an error twice
    QUARANTINED = "quarantined"  # processes died over it; only an edit or a retry reads it again


DEAD_LETTER_REASONS = (*map(str, Dead), str(Skip.MISSING))


class Story(Struct, frozen=True):
    """One listed story; `path` is None if the listing names no path, `position` is that of its row in the listing.

    `name` is the id in the listing where that is no integer; `id` is then made from it.  A work of the reference has a
    `catalogue`, and perhaps a `licence`.  Stories of one author with one `series_id` are chapters of a serial.
    """

    id: int
    language: Language
    path: str | None = None
    author_id: str | None = None
    title: str | None = None
    published_at: int | None = None
    updated_at: int | None = None
    position: int = 0
    name: str | None = None
    catalogue: str | None = None
    licence: str | None = None
    series_id: str | None = None

    @property
    def shown(self) -> ShownId:
        """The id as the listing has it."""
        return show_id(self.id, self.name)

    @property
    def key(self) -> str:
        """The key of the story among the stories in flight and the dead letters."""
        return str(self.id)


def show_id(number: int, name: str | None) -> ShownId:
    """The id of a story as its listing has it, of its integer and its name."""
    return number if name is None else name


def is_work(story_id: int) -> bool:
    """Whether a story is a work of the reference: their ids are negative, and those of the platform's stories not."""
    return story_id < 0


class BadRow(Struct, frozen=True):
    """A listed row that does not describe a story; `key` is the id of a page that has a `name`, which is its path."""

    key: str
    reason: Dead
    error: str
    position: int = 0
    name: str | None = None

    @property
    def shown(self) -> str:
        """The row as the listing names it."""
        return self.name or self.key


ListedRow = Story | BadRow


class Fingerprint(Struct, frozen=True):
    """The fingerprint of a text: `text_hash` and `simhash` of 16 bytes each, `signature` of 64 bytes.

    `shingles` is the number of distinct pairs of adjacent words.  A text with too few of them has no signature.
    `passages` are its passage hashes: 4 bytes each, ascending as little-endian numbers.
    """

    text_hash: bytes
    simhash: bytes
    signature: bytes | None
    words: int
    shingles: int
    passages: bytes = b""


FEW_SHINGLES = "few_shingles"  # metric label and log word for a fingerprinted story without a signature

# What a page and its text are like: the words, and the vowel signs and viramas, a visible character; 1 if the text has
# replacement characters, else 0; the share of the page's characters that a browser does not show.
TextMeasures = tuple[float, float, float, float]


class MarkReason(StrEnum):
    """Why a story is marked.  The value is a metric label."""

    MISLABELLED = "mislabelled"  # most letters of its text are of a script in which its language is not written
    TRUNCATED = "truncated"  # its page exceeds a limit or causes an error, and was read in part
    HIDDEN = "hidden"  # most of its page's text is not shown
    LOOK_ALIKES = "look_alikes"  # many letters look like others, or are unseen
    CONTROLS = "controls"  # many characters of its text are control characters
    EMPTY = "empty"  # these three were skipped, as `Skip` says
    NOT_TEXT = "not_text"
    OVER_BUDGET = "over_budget"


class Limit(StrEnum):
    """Why a page is truncated: the limit that it exceeds, or an error."""

    SIZE = "size"  # read up to content.max_bytes
    TAGS = "tags"  # read without its markup, since it has too many tags
    BUDGET = "budget"  # read without its markup, since parsing exceeds the limits or ended processes
    NESTING = "nesting"  # read without the pages that stand within too many others
    ERROR = "error"  # read without its markup, since parsing raises an error


_ELEMENTS = (
    "bdo, button, dialog, embed, font, frame, iframe, img, input, link, marquee, math, object, select, source, sup,"
    " svg, template, textarea"
)
_ATTRIBUTES = "alt, bgcolor, color, data, dir, hidden, href, placeholder, popover, src, srcset, style, text, value"
# Why the styles of a page were computed.  Each is a metric label.
RENDER_REASONS = (
    "style sheet",
    "annotations",
    "little text",
    "override",
    *(f"element {name}" for name in _ELEMENTS.split(", ")),
    *(f"attribute {name}" for name in _ATTRIBUTES.split(", ")),
)


class Rendering(NamedTuple):
    """Why a story was rendered, one of RENDER_REASONS, and by what: `native` is the library in C.

    Of most pages only the story is looked at, and nothing is rendered.
    """

    reason: str
    by: Literal["native", "python"]


RENDERINGS = tuple(Rendering(reason, by) for by in ("native", "python") for reason in RENDER_REASONS)


class Mark(Struct, frozen=True):
    """What is unusual about a story, beside its outcome.

    `detail` is the script or the limit, or the share in percent, such as "63 %"; "" for a story that was skipped.
    """

    reason: MarkReason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} {self.detail}".rstrip()


Marks = tuple[Mark, ...]  # of distinct reasons


class Fingerprinted(Struct, frozen=True):
    """The story is new or its text has changed; `page_title` names it if the listing does not.

    `text_sha256` is `Text.sha256`, None where only the fingerprint is at hand.
    """

    story: Story
    fingerprint: Fingerprint
    etag: str | None
    page_title: str | None = None
    marks: Marks = ()
    measures: TextMeasures | None = None
    text_sha256: bytes | None = None


class Skipped(Struct, frozen=True):
    """The story has no new fingerprint, for a named reason; `was_asked` if its page had to be asked for.

    `marks` replace those on record; None leaves them as they are, because the page was not read.
    """

    story: Story
    reason: Skip
    etag: str | None = None
    was_asked: bool = True
    marks: Marks | None = None


class DeadLettered(Struct, frozen=True):
    """The story or row could not be processed, for a named reason."""

    story: ListedRow
    reason: Dead
    error: str


Outcome = Fingerprinted | Skipped | DeadLettered


class StoredVersion(Struct, frozen=True):
    """What the ledger has on a story, to decide whether the story has changed.

    `number` is that of the change by which its text was recorded.
    """

    language: Language
    text_hash: bytes
    etag: str | None
    updated_at: int | None
    name: str | None
    number: int
    path: str | None


def make_etag(status: os.stat_result) -> str:
    """What changes with a file's content: its inode, its time of change (nanoseconds) and its size (bytes)."""
    return f"{status.st_ino:x}-{status.st_mtime_ns:x}-{status.st_size:x}"


class BandedFingerprint(Struct, frozen=True):
    """What an index stores a story by: its language, SimHash (16 bytes) and signature (64 bytes, or None)."""

    language: Language
    simhash: bytes
    signature: bytes | None = None


class Change(Struct, frozen=True):
    """One entry of the ledger's outbox: the bands that a story leaves, and the bands that it enters.

    The bands of the SimHash contain the id of the story, which is removed from the bands that it leaves.  The bands of
    the signature contain `number`, which is unique to this version of the story.  The number of a former version stays
    in its bands, and lookups ignore it.
    """

    seq: int
    story_id: int
    old: BandedFingerprint | None
    new: BandedFingerprint | None
    number: int = 0


class Checkpoint(Struct, frozen=True):
    """The progress of a backfill: the id of the listing, an offset in it, and the latest `updated_at` so far."""

    listing: str
    position: int
    newest: int | None = None


# Pairs of stories, from the candidate to the verdict

Spans = npt.NDArray[np.int32]  # (n, 2): words [start, end) of a text, ascending and disjoint
NO_SPANS: Spans = np.empty((0, 2), np.int32)
# Equal words of a copied block, at least: one pair in a thousand of unrelated stories has a block of 12 to 19, one in
# 300 one of 8 to 19.
MIN_BLOCK = 12


class PairedStory(Struct, frozen=True):
    """One story of a candidate pair, with what is needed to verify the pair and to read the text again."""

    id: int
    language: Language
    path: str | None
    text_hash: bytes
    simhash: bytes
    signature: bytes | None
    words: int
    shingles: int

    @classmethod
    def of(cls, story_id: int, language: Language, made: Fingerprint) -> Self:
        """A story whose text is at hand, by its fingerprint."""
        return cls(story_id, language, None, made.text_hash, made.simhash, made.signature, made.words, made.shingles)

    @classmethod
    def of_row(cls, row: Mapping[str, Any], suffix: str = "") -> Self:
        """The story of a row whose columns have the names of the fields, each with this suffix."""
        return cls(*(row[name + suffix] for name in cls.__struct_fields__))


class Candidate(Struct, frozen=True):
    """A nominated pair, `a.id` < `b.id`.  The thresholds, flags and counts of a pair are those of a's language."""

    a: PairedStory
    b: PairedStory

    @property
    def language(self) -> Language:
        """The language that the pair is filed under."""
        return self.a.language

    @property
    def is_of_one_language(self) -> bool:
        return self.a.language == self.b.language


Kind = str  # how two stories match: the name of a row of neardup.core.verify.tiers.TIERS


class Copied(Struct, frozen=True):
    """What two texts share, as `core.verify.alignment` finds it.

    - `words`: the equal words of all blocks, without repetitions: where a text repeats a passage, it counts once.
    - `common_words`: the equal words that were left out because they stand in a common passage.
    - `spans_a`, `spans_b`: the blocks in either text with the edits inside them, without common passages; each begins
      and ends with equal words.
    - `longest_run`: the words of the longest run that both share; None if the alignment did not find it.
    """

    words: int
    common_words: int
    spans_a: Spans
    spans_b: Spans
    longest_run: int | None


class Signals(Struct, frozen=True):
    """The measurements of a pair, by which the tiers decide.

    `hamming` counts the bits in which the SimHashes differ.  `jaccard` and the containments compare the sets of
    shingles, from 0 to 1; `containment_a` is the share of a's shingles that b has.  If a text is missing, they are
    `estimated` from the signatures, or None without signatures.  For the tiers that compare skeletons they compare the
    sets of consonant grams instead.  `extra` has the further signals of a tier, by name.
    """

    hamming: int
    same_text: bool = False
    jaccard: float | None = None
    containment_a: float | None = None
    containment_b: float | None = None
    longest_run_words: int | None = None
    estimated: bool = False
    extra: Mapping[str, float] = field(default_factory=dict)

    @property
    def containment(self) -> float:
        """The larger containment, which is never below the Jaccard similarity; 0 if unknown."""
        return max(self.containment_a or 0.0, self.containment_b or 0.0)


LONGEST_FIELD = 2_000  # characters of each text of a permission
LONGEST_PERSON, LONGEST_STATEMENT = 200, 10_000  # characters: a name or a contact in a complaint, and its words


class Verdict(StrEnum):
    """What a moderator says of a flagged pair.  The value of one that decides is the flag's status."""

    PLAGIARISM = "plagiarism"
    REPOST = "repost"  # the author's own
    QUOTATION = "quotation"
    TEMPLATE = "template"  # text that many stories share: a form, a prayer, a blurb
    NOT_SIMILAR = "not_similar"
    UNSURE = "unsure"  # asks another moderator
    REOPENED = "reopened"  # takes back the verdict before it; its note gives the reason


DECIDING = tuple(verdict for verdict in Verdict if verdict not in {Verdict.UNSURE, Verdict.REOPENED})
PERMITTED = "permitted"  # the status of a flag that no verdict decides, and a permission covers
STATUSES = ("open", PERMITTED, *(verdict.value for verdict in DECIDING))  # of the flags that were not withdrawn


class Assessment(Struct, frozen=True, eq=False):
    """The result of verifying a pair; `kind` is None for a near miss.

    `spans_a` and `spans_b` are the copied words of either text, as `core.verify.alignment` finds them; none if a text
    was missing.
    """

    kind: Kind | None
    signals: Signals
    spans_a: Spans = field(default_factory=lambda: NO_SPANS)
    spans_b: Spans = field(default_factory=lambda: NO_SPANS)

    def __reduce__(self) -> tuple[Callable[..., Self], tuple[object, ...]]:
        """Pickle the spans as bytes, which numpy would pickle in ten times the time."""
        return type(self).of_bytes, (self.kind, self.signals, self.spans_a.tobytes(), self.spans_b.tobytes())

    @classmethod
    def of_bytes(cls, kind: Kind | None, signals: Signals, spans_a: bytes, spans_b: bytes) -> Self:
        return cls(kind, signals, *(np.frombuffer(spans, np.int32).reshape(-1, 2) for spans in (spans_a, spans_b)))


@lru_cache(CACHED_TIMES)
def format_time(milliseconds: int | None) -> str | None:
    """Milliseconds since 1970 -> 2026-11-20T02:00:00Z, with a fraction unless it is zero."""
    if milliseconds is None:
        return None
    at = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return at.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds").replace("+00:00", "Z")


def parse_milliseconds(time: str | None) -> int | None:
    """The inverse of `format_time`."""
    return None if time is None else count_milliseconds(datetime.fromisoformat(time))


def count_milliseconds(time: datetime | None) -> int | None:
    """The milliseconds from 1970 to a time that has a zone, rounded."""
    return None if time is None else round(time.timestamp() * 1000)


def format_percent(share: float) -> str:
    """A share, 0 to 1, in percent; only exactly all of it is 100 %, and only exactly nothing 0 %."""
    return f"{min(max(round(100 * share), 1), 99) if 0 < share < 1 else round(100 * share)} %"


def format_count(n: int, singular: str, plural: str) -> str:
    """A number of things in English, such as "1 story" or "2,000 stories"."""
    return f"{n:,} {singular if n == 1 else plural}"


def format_readable_time(time: str | None) -> str:
    """A time in RFC 3339, of any zone, for people: 20 November 2026, 02:00 UTC; "" for None."""
    if time is None:
        return ""
    when = datetime.fromisoformat(time).astimezone(UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"
