"""The records that flow through the pipeline: frozen, slotted.  Times are whole milliseconds since 1970 in UTC."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType, Self

Language = NewType("Language", str)  # a registered language's name: see neardup.languages


class Skip(StrEnum):
    """Why a story was left without a new fingerprint.  The value is metric label and log word."""

    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"  # the ledger holds a later version of the story
    MISSING = "missing"  # no such object
    TOO_LARGE = "too_large"
    EMPTY = "empty"  # an object of no bytes, or a page without a word
    NOT_TEXT = "not_text"  # a picture, an archive, ... under a page's name
    NO_BODY = "no_body"  # nothing on the page matches extract.body
    TOO_SHORT = "too_short"
    OVER_BUDGET = "over_budget"  # reading it takes more time or memory than a page may


class Dead(StrEnum):
    """Why a row or a story was dead-lettered.  The value is metric label and log word."""

    BAD_ROW = "bad_row"
    BAD_ID = "bad_id"
    BAD_LANGUAGE = "bad_language"
    BAD_TIME = "bad_time"
    BAD_PATH = "bad_path"
    STORE_ERROR = "store_error"
    FORBIDDEN = "forbidden"
    CRASHED = "crashed"  # its processing raised, twice
    QUARANTINED = "quarantined"  # processes died of it, twice: it is not read again until it is edited or retried


@dataclass(frozen=True, slots=True)
class Story:
    """One listed story; `path` is its object's, where the listing names one, `position` its row's byte offset."""

    id: int
    language: Language
    path: str | None = None
    author_id: str | None = None
    title: str | None = None
    published_at: int | None = None
    updated_at: int | None = None
    position: int = 0

    @property
    def key(self) -> str:
        """What it is known by among the stories under way and the dead letters."""
        return str(self.id)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A listed row that names no story that could be processed."""

    key: str
    reason: Dead
    error: str
    position: int = 0


Listed = Story | BadRow


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """`text_hash` and `simhash` are 16 bytes each, `signature` 64.

    A story of too few `shingles` (distinct pairs of adjacent words) has no signature.
    """

    text_hash: bytes
    simhash: bytes
    signature: bytes | None
    words: int
    shingles: int

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickled in half the time that looking its fields up would take."""
        return type(self), (self.text_hash, self.simhash, self.signature, self.words, self.shingles)


@dataclass(frozen=True, slots=True)
class Fingerprinted:
    """The story is new or its text has changed."""

    story: Story
    fingerprint: Fingerprint
    etag: str | None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The story has no new fingerprint, for a named reason."""

    story: Story
    reason: Skip
    etag: str | None = None


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """The story or row could not be processed, for a named reason."""

    story: Listed
    reason: Dead
    error: str


Outcome = Fingerprinted | Skipped | DeadLettered


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger knows of a story that helps to tell whether it changed."""

    language: Language
    text_hash: bytes
    etag: str | None
    updated_at: int | None


@dataclass(frozen=True, slots=True)
class Banded:
    """A SimHash (16 bytes), a signature (64), and the language whose bands they stand in."""

    language: Language
    simhash: bytes
    signature: bytes | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the ledger's outbox: the bands a story leaves and the bands it enters.

    The SimHash's bands hold the story by its id, and are left.  The signature's hold it by `number`,
    which no other version of a story ever has; there, what was left stays behind and means nothing.
    """

    seq: int
    story_id: int
    old: Banded | None
    new: Banded | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Side:
    """One story of a pair: what is needed to verify it, and to fetch its text again."""

    id: int
    path: str | None
    text_hash: bytes
    simhash: bytes
    signature: bytes | None
    words: int
    shingles: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A nominated pair, `a.id` < `b.id`."""

    language: Language
    a: Side
    b: Side


Kind = str  # how two stories match: the name of a row of neardup.core.verify.tiers.TIERS


@dataclass(frozen=True, slots=True)
class Signals:
    """What is measured of a pair, for the tiers to decide by.

    `hamming` counts the bits in which the SimHashes differ.  `jaccard` and the containments are of the sets of
    shingles, 0 to 1; `containment_a` is the share of a's that b has.  They are None where a text is missing and no
    signatures can stand in for it; `estimated` ones come from the signatures.  `extra` holds the signals of tiers
    that have more to measure, by name.
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
        """The larger containment, which no Jaccard similarity exceeds; 0 where none is known."""
        return max(self.containment_a or 0.0, self.containment_b or 0.0)


class Verdict(StrEnum):
    """What a moderator decides on a flagged pair.  The value is the flag's status, metric label and word in exports."""

    PLAGIARISM = "plagiarism"
    REPOST = "repost"  # the author's own
    QUOTATION = "quotation"
    TEMPLATE = "template"  # text that many share: a form, a prayer, a blurb
    NOT_SIMILAR = "not_similar"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The result of verifying a pair; `kind` is None for a near miss."""

    kind: Kind | None
    signals: Signals


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a backfill came: the listing's name for itself, an offset in it, the latest `updated_at` so far."""

    listing: str
    position: int
    newest: int | None = None
