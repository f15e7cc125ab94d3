"""The records that flow through the pipeline: frozen, slotted.  Times are whole milliseconds since 1970 in UTC."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NewType, Self

Language = NewType("Language", str)  # a registered language's name: see neardup.languages

SUBMITTED = "submitted://"  # before the file name of a submitted page; no listed path has an empty segment
TEXT_ENDING = ".txt"  # of a submitted page that is a plain text, not markup


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
    STORE_ERROR = "store_error"
    FORBIDDEN = "forbidden"
    CRASHED = "crashed"  # processing the story raised an error twice
    QUARANTINED = "quarantined"  # processes died over it; only an edit or a retry reads it again


DEAD_LETTER_REASONS = (*map(str, Dead), str(Skip.MISSING))


@dataclass(frozen=True, slots=True)
class Story:
    """One listed story; `path` is None if the listing names no path, `position` is that of its row in the listing.

    `name` is the id in the listing where that is no integer; `id` is then made from it.  A work of the reference has a
    `catalogue`, and perhaps a `licence`.
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

    @property
    def key(self) -> str:
        """The key of the story among the stories in flight and the dead letters."""
        return str(self.id)


def is_work(story_id: int) -> bool:
    """Whether a story is a work of the reference: their ids are negative, and those of the platform's stories not."""
    return story_id < 0


@dataclass(frozen=True, slots=True)
class BadRow:
    """A listed row that does not describe a story."""

    key: str
    reason: Dead
    error: str
    position: int = 0


ListedRow = Story | BadRow


@dataclass(frozen=True, slots=True)
class Fingerprint:
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

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickle as a tuple, which takes half the time of the default."""
        return type(self), (self.text_hash, self.simhash, self.signature, self.words, self.shingles, self.passages)


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
# Why a page took the slow road, on which styles are computed.  Each is a metric label.
RENDER_REASONS = (
    "style sheet",
    "annotations",
    "little text",
    *(f"element {name}" for name in _ELEMENTS.split(", ")),
    *(f"attribute {name}" for name in _ATTRIBUTES.split(", ")),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """What is unusual about a story, beside its outcome.

    `detail` is the script or the limit, or the share in percent, such as "63 %"; "" for a story that was skipped.
    """

    reason: MarkReason
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} {self.detail}".rstrip()


Marks = tuple[Mark, ...]  # of distinct reasons


@dataclass(frozen=True, slots=True)
class Fingerprinted:
    """The story is new or its text has changed; `page_title` names it if the listing does not."""

    story: Story
    fingerprint: Fingerprint
    etag: str | None
    page_title: str | None = None
    marks: Marks = ()
    measures: TextMeasures | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The story has no new fingerprint, for a named reason; `was_asked` if its page had to be asked for.

    `marks` replace those on record; None leaves them as they are, because the page was not read.
    """

    story: Story
    reason: Skip
    etag: str | None = None
    was_asked: bool = True
    marks: Marks | None = None


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """The story or row could not be processed, for a named reason."""

    story: ListedRow
    reason: Dead
    error: str


Outcome = Fingerprinted | Skipped | DeadLettered


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """What the ledger has on a story, to decide whether the story has changed."""

    language: Language
    text_hash: bytes
    etag: str | None
    updated_at: int | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class BandedFingerprint:
    """What an index stores a story by: its language, SimHash (16 bytes) and signature (64 bytes, or None)."""

    language: Language
    simhash: bytes
    signature: bytes | None = None


@dataclass(frozen=True, slots=True)
class Change:
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


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The progress of a backfill: the id of the listing, an offset in it, and the latest `updated_at` so far."""

    listing: str
    position: int
    newest: int | None = None
