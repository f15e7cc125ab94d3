"""The messages of the desk's JSON API as models: the queries, the bodies that a client sends, and the answers.

The OpenAPI document and the API share them.  An unknown member of a body is an error.  Answers may get further members:
a client ignores those that it does not know.  Times are in RFC 3339.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from neardup.ledger.case_queue import Authors, Complained, Inbox, Order
from neardup.moderation.desk import complaints
from neardup.moderation.desk.addresses import CASE_STATUSES, MAX_NUMBER, MEANING_STATUSES, SHOWN
from neardup.moderation.desk.moderators import MAX_NOTE_LENGTH, OFFERED, clean_note
from neardup.records import DECIDING, ShownId, Verdict

PAGE_SIZE, LARGEST_PAGE = 50, 200
LANGUAGE = "A name, an ISO 639 code or a tag of RFC 5646: `HINDI`, `hi`, `hi-IN`."
SEEN = "The `seen` of what is decided, as it was read."
KIND = "What the pair has, such as `exact`."
SHARE = "0 to 1: the larger share of either story's words that is copied."
STATUS = "`open`, `permitted`, or the verdict of a moderator."


# Queries.


class Part(BaseModel):
    """Which part of a list."""

    first: int = Field(default=0, ge=0, le=MAX_NUMBER, description="The position of the first, from 0.")
    limit: int = Field(default=PAGE_SIZE, ge=1, le=LARGEST_PAGE, description="How many at most.")


class CasesQuery(Part):
    """Which cases to list, and in which order: the query of the first page of the desk."""

    language: str | None = Field(default=None, description=f"{LANGUAGE} Else the moderator's languages.")
    kind: str | None = Field(default=None, description="Those with a pair of this kind.")
    status: Literal[CASE_STATUSES] = Field(  # type: ignore[valid-type]
        default="open", description="Those with an open pair, those judged, every case, or a status of a pair."
    )
    similarity: float | None = Field(default=None, ge=0, le=1, description="Those of at least this similarity.")
    author: str | None = Field(default=None, description="Those with a story by this author.")
    authors: Literal[tuple(Authors)] | None = Field(  # type: ignore[valid-type]
        default=None, description="Those whose stories are by one author, or by others."
    )
    catalogue: str | None = Field(default=None, description="Those that copy a work of this catalogue.")
    decided_by: str | None = Field(default=None, description="Those with a verdict of this moderator.")
    since: str | None = Field(default=None, description="Those flagged since this day in UTC.")
    until: str | None = Field(default=None, description="Those flagged before this day in UTC.")
    inbox: Literal[tuple(Inbox)] | None = Field(  # type: ignore[valid-type]
        default=None, description="Those that wait for the moderator, or for others."
    )
    complaint: Literal[tuple(Complained)] | None = Field(  # type: ignore[valid-type]
        default=None, description="Those with an open, or an overdue complaint."
    )
    sort: Literal[tuple(Order)] = Field(  # type: ignore[valid-type]
        default="similarity", description="What comes first; the largest does."
    )


class ComplaintsQuery(Part):
    """Which complaints to list."""

    closed: Literal["1"] | None = Field(default=None, description="Those that are closed; else the open ones.")


class MeaningQuery(Part):
    """Which translated and retold pairs to list: the query of their page."""

    language: str | None = Field(default=None, description=LANGUAGE)
    kind: str | None = Field(default=None, description="`translated` or `retold`.")
    status: Literal[tuple(MEANING_STATUSES)] = Field(  # type: ignore[valid-type]
        default="open", description="Open pairs, those judged, every pair, or those of a status."
    )
    author: str | None = Field(default=None, description="Those with a story by this author.")
    story: str | None = Field(default=None, description="Those of this story.")
    catalogue: str | None = Field(default=None, description="Those with a work of this catalogue.")
    same_author: Literal[SHOWN] | None = Field(  # type: ignore[valid-type]
        default=None, description="Also those by one author."
    )


# What a client sends.


def _require_among(verdicts: Sequence[Verdict], value: Verdict) -> Verdict:
    if value not in verdicts:
        raise ValueError(f"a verdict is one of {', '.join(verdicts)}")
    return value


Offered = Annotated[
    Verdict,
    AfterValidator(partial(_require_among, OFFERED)),
    WithJsonSchema({"type": "string", "enum": list(map(str, OFFERED))}),
]
Deciding = Annotated[
    Verdict,
    AfterValidator(partial(_require_among, DECIDING)),
    WithJsonSchema({"type": "string", "enum": list(map(str, DECIDING))}),
]
Note = Annotated[str, AfterValidator(clean_note), Field(max_length=MAX_NOTE_LENGTH)]


class Body(BaseModel):
    """What a client sends: an unknown member is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class UndoBody(Body):
    """What is undone, as it was read."""

    seen: str = Field(description=SEEN)


class VerdictBody(UndoBody):
    """A verdict on the open pairs of a case, but those that are left out."""

    verdict: Offered
    note: Note = ""
    leave_out: frozenset[int] = Field(default=frozenset(), description="The `flag_id` of pairs.")


class SecondBody(UndoBody):
    """A verdict on a case that waits for a second review."""

    verdict: Deciding
    note: Note = ""


class MeaningVerdictBody(UndoBody):
    """A verdict on a translated or retold pair."""

    verdict: Offered
    note: Note = ""


class ReopenBody(Body):
    """The reason why a case is opened again."""

    seen: str = Field(description="The `decided_seen` of the case, as it was read.")
    note: Annotated[Note, Field(min_length=1)]


class HidingBody(Body):
    """The reason why an author's stories are hidden, or shown again."""

    note: Note = ""


class ComplaintBody(Body):
    """What is done with a complaint, one of the actions of its page, and the words that belong to it."""

    action: Literal[complaints.ACTIONS]  # type: ignore[valid-type]
    note: Note = Field(default="", description=f"Needed for {', '.join(complaints.NEED_WORDS)}.")

    @model_validator(mode="after")
    def _has_words(self) -> Self:
        if self.action in complaints.NEED_WORDS and not self.note:
            raise ValueError("this action needs a note: what was answered, or why")
        return self


# What the desk answers.


class Answer(BaseModel):
    """What the desk answers; a client ignores members that it does not know."""

    model_config = ConfigDict(frozen=True)


class Problem(Answer):
    """A failure, by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


class Lease(Answer):
    """Who holds a case, and until when."""

    moderator: str
    until: str


class ShownMark(Answer):
    """What is unusual about a story."""

    reason: str
    detail: str


class Lead(Answer):
    """The story by which a case is known."""

    story_id: ShownId
    title: str | None
    author_id: str | None
    published_at: str | None
    words: int
    marks: list[ShownMark]


class AnyCase(Answer):
    """What a moderator may know of every case."""

    case_id: ShownId
    language: str
    lead: Lead
    kinds: list[str]
    catalogues: list[str]
    pairs: int
    stories: int
    order_known: bool = Field(description="Whether it is known which story of each pair was published first.")
    flagged_at: str


class ListedCase(AnyCase):
    """A case in a queue."""

    similarity: float = Field(description=SHARE)
    statuses: list[str]
    open_pairs: int
    same_author: bool
    author_cases_of_plagiarism: int
    second_opinion_asked_by: list[str]
    lease: Lease | None


class Counts(Answer):
    """How many cases match, and how many would with another value of one filter; `hidden` are left out of it."""

    total: int
    hidden: int
    languages: dict[str, int]
    kinds: dict[str, int]
    statuses: dict[str, int]
    authors: dict[str, int]
    catalogues: dict[str, int]


class CasesAnswer(Answer):
    """A part of a queue of cases."""

    counts: Counts
    cases: list[ListedCase]


class BlindPair(Answer):
    """A pair of a case, without what was decided on it."""

    flag_id: int
    kind: str = Field(description=KIND)
    similarity: float = Field(description=SHARE)
    story_id: ShownId
    story_title: str
    story_author_id: str | None
    matched_id: ShownId
    matched_title: str
    matched_author_id: str | None
    copied_words: int | None


class ShownPair(BlindPair):
    """A pair of a case."""

    status: str = Field(description=STATUS)


class RemovedText(Answer):
    """A text that was removed from an author with the verdict plagiarism, and that the lead matches."""

    removed_author: str | None
    kind: str
    similarity: float
    removed_at: str


class Serials(Answer):
    """Two serials that match."""

    source_author_id: str | None
    source_serial: str | None
    copy_author_id: str | None
    copy_serial: str | None
    aligned_pairs: int
    parts: list[dict[str, tuple[int, int]]] = Field(description="From which chapter to which, in `source` and `copy`.")


class GivenDecision(Answer):
    """A decision on pairs of a case."""

    decision: int
    verdict: str
    note: str
    moderator: str
    decided_at: str
    undone_at: str | None
    undone_by: str | None
    pairs: int


class Case(ListedCase):
    """A case with the first of its pairs, the open ones first, and the decisions on it, the newest first."""

    seen: str = Field(description="What a verdict asks for.")
    decided_seen: str = Field(description="What opening it again asks for.")
    evidence: list[ShownPair]
    removed_texts: list[RemovedText]
    serials: list[Serials]
    decisions: list[GivenDecision]


class BlindCase(AnyCase):
    """A case that waits for a second review, with nothing that a verdict has changed."""

    seen: str = Field(description="What a verdict asks for.")
    evidence: list[BlindPair]


class SecondAnswer(Answer):
    """The cases that wait for a second review by the moderator."""

    total: int
    cases: list[BlindCase]


class Decision(Answer):
    """A decision with the pairs that it is about."""

    decision: int
    verdict: str
    moderator: str
    is_undone: bool
    cases: list[ShownId]
    pairs: list[tuple[ShownId, ShownId]]
    seen: str = Field(description="What undoing it asks for.")


class ComplaintStep(Answer):
    """A step of a complaint; `by` is a moderator, null for a program."""

    step: str
    at: str
    by: str | None
    note: str


class Complaint(Answer):
    """A complaint with its log."""

    number: int
    story_id: ShownId
    title: str | None
    language: str | None
    author_id: str | None
    original_id: ShownId | None
    has_original_text: bool
    complainant: str | None = Field(description="Null once the complainant was forgotten.")
    contact: str | None
    statement: str
    evidence: dict[str, Any] | None = Field(description="What the comparison shows; null if there was none: see `log`.")
    received_at: str
    due_at: str
    closed_at: str | None
    outcome: str | None
    log: list[ComplaintStep]


class ShownComplaint(Complaint):
    """A complaint with its log, and the text of the original, if the complainant gave it."""

    original_text: str | None


class ComplaintsAnswer(Answer):
    """A part of the complaints, and how many there are."""

    total: int
    complaints: list[Complaint]


class HiddenAuthor(Answer):
    """An author whose undecided stories the platform is asked to hide, and these stories."""

    author_id: str
    note: str
    moderator: str
    hidden_at: str
    stories: list[ShownId]


class HiddenAnswer(Answer):
    """Whom the platform is asked to hide, the latest first."""

    authors: list[HiddenAuthor]


class AlignedChunks(Answer):
    """Two chunks that belong together, counted from 0: of the story with the lower id, and of the other."""

    a: int
    b: int
    cosine: float


class MeaningPair(Answer):
    """A translated or retold pair: the columns of its export, and `seen`, which a verdict asks for."""

    flag_id: int
    kind: str
    margin: float
    language: str
    matched_language: str
    story_id: ShownId
    matched_id: ShownId
    story_title: str | None
    matched_title: str | None
    story_author_id: str | None
    matched_author_id: str | None
    same_author: bool | None
    story_published_at: str | None
    matched_published_at: str | None
    earlier_id: ShownId | None
    status: str = Field(description=STATUS)
    flagged_at: str
    model: str
    chunks: list[AlignedChunks]
    story_path: str | None
    matched_path: str | None
    story_known_since: str | None
    matched_known_since: str | None
    moderator: str | None
    note: str | None
    decided_at: str | None
    catalogue: str | None
    licence: str | None
    seen: str


class MeaningAnswer(Answer):
    """A part of the translated and retold pairs."""

    total: int
    pairs: list[MeaningPair]
