"""The messages of the HTTP API as models: the ids of stories, what a client sends, and what the service answers.

The OpenAPI document, the service and the clients share them.  A request is strict: nothing is converted, and an unknown
member is an error.  Answers may get further members: a client ignores those that it does not know.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from neardup.records import LONGEST_FIELD, LONGEST_PERSON, LONGEST_STATEMENT, ShownId, shown_id
from neardup.source.parse import LONGEST_NAME, MAX_ID, make_printable, parse_id, parse_name, parse_time

if TYPE_CHECKING:
    from neardup.http.problems import Refused

SIMILARITY = "The similarity of the pair, 0 to 1: the larger share of either story's words that is copied."
MOST_STORIES = 100  # in one batch
ID_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": MAX_ID},
        {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
    ]
}
AUTHOR_SCHEMA = {"anyOf": [{"type": "integer", "minimum": -MAX_ID, "maximum": MAX_ID}, {"type": "string"}]}
Verdict = Literal["clear", "review", "copy"]


class StoryId(NamedTuple):
    """A story's integer, and its name, None for a story that is listed with the integer."""

    number: int
    name: str | None

    @property
    def shown(self) -> ShownId:
        """The id as a listing has it."""
        return shown_id(self.number, self.name)


def story_id_of(listed: ShownId) -> StoryId:
    """The story with this id in a listing.  Raises ValueError for a text that is no id."""
    return StoryId(parse_id(str(listed)), parse_name(str(listed)))


# What a client sends.


def _time(value: str) -> str:
    try:
        parse_time(value)
    except (ValueError, OverflowError):
        raise ValueError("not an RFC 3339 time") from None
    return value


def _id(value: object) -> ShownId:
    if (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID) or isinstance(value, str):
        story_id_of(value)
        return value
    raise ValueError(f"neither an integer from 0 to {MAX_ID} nor a text")


def _author(value: object) -> str:
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_ID):
        return make_printable(value) or ""
    raise ValueError(f"neither an integer of at most {MAX_ID} nor a text")


ListedId = Annotated[ShownId, PlainValidator(_id), WithJsonSchema(ID_SCHEMA)]
AuthorId = Annotated[str, PlainValidator(_author), WithJsonSchema(AUTHOR_SCHEMA)]
Time = Annotated[str, AfterValidator(_time), Field(json_schema_extra={"format": "date-time"})]


class Request(BaseModel):
    """What a client sends: nothing is converted, and an unknown member is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _one_of(name: str, *others: str) -> dict[str, Any]:
    """A JSON schema: exactly one of these members is given.  With `oneOf`, generators of clients lose the members."""
    given = {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
    if not others:
        return given
    no_others = {"properties": {other: {"type": "null"} for other in others}}
    return {"if": given, "then": no_others, "else": _one_of(*others)}


def _require_one(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        raise ValueError(f"give either {' or '.join(names)}")


class TextRequest(Request):
    """The text of a story, or its page as HTML, and what is known of it."""

    model_config = ConfigDict(json_schema_extra=_one_of("text", "html"))

    language: str = Field(description="A name, an ISO 639 code or a tag of RFC 5646: `HINDI`, `hi`, `hi-IN`.")
    text: str | None = Field(default=None, description="The story as plain text.")
    html: str | None = Field(default=None, description="The story's page; `extract.body` selects the story in it.")
    author_id: AuthorId | None = Field(
        default=None, description="Matches with stories of the same author may not count."
    )
    title: str | None = None

    @model_validator(mode="after")
    def _has_one_text(self) -> Self:
        _require_one(self, "text", "html")
        return self


class StoryRequest(TextRequest):
    """A story: its text, or its page as HTML, and what is known of it."""

    published_at: Time | None = Field(default=None, description="RFC 3339; UTC if it names no zone.")
    series_id: AuthorId | None = Field(
        default=None, description="Stories of the author with the same one are chapters of a serial."
    )


class DraftRequest(TextRequest):
    """A draft to store and to check."""

    author_id: AuthorId = Field(description="What else this author wrote is no match of the draft.")


class CheckRequest(StoryRequest):
    """A story to check; nothing of it is stored."""

    id: ListedId | None = Field(default=None, description="The story's id, if it has one: it is no match of itself.")


class PutRequest(StoryRequest):
    """A story to check and to store."""

    path: str | None = Field(default=None, description="The story's page below `content.url`, where it has one.")
    restore: bool = Field(default=False, description="Store it even if it was forgotten on request.")


class BatchRequest(Request):
    """Stories to check, each by itself."""

    stories: list[CheckRequest] = Field(min_length=1, max_length=MOST_STORIES)


class PermissionRequest(Request):
    """A permission to enter: an author permits all own texts, a serial or a story, or else a catalogue its works."""

    granted_by: AuthorId | None = Field(default=None, description="Who permits it: the author of the text.")
    story_id: ListedId | None = Field(default=None, description="The one story of this author that may be used.")
    serial: str | None = Field(
        default=None,
        description="The serial of this author of which all chapters may be used: its series id, or its title.",
    )
    catalogue: str | None = Field(default=None, description="Instead: all works of this catalogue may be used.")
    granted_to: AuthorId | None = Field(default=None, description="The author who may use it; null for everyone.")
    licence: str | None = None
    note: str = Field(default="", max_length=LONGEST_FIELD)
    since: Time | None = Field(default=None, description="RFC 3339; null for at once.")
    until: Time | None = Field(default=None, description="RFC 3339; null for no end.")


class ComparedStory(Request):
    """One side of a comparison: a stored story, a text or a page."""

    model_config = ConfigDict(json_schema_extra=_one_of("story_id", "text", "html"))

    story_id: ListedId | None = None
    text: str | None = None
    html: str | None = None

    @model_validator(mode="after")
    def _is_one_story(self) -> Self:
        _require_one(self, "story_id", "text", "html")
        return self


class CompareRequest(Request):
    """Two stories to compare."""

    a: ComparedStory
    b: ComparedStory


def _words(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty")
    return value.strip()


Name = Annotated[str, Field(max_length=LONGEST_PERSON), AfterValidator(_words)]
Statement = Annotated[str, Field(max_length=LONGEST_STATEMENT), AfterValidator(_words)]


class ComplaintRequest(Request):
    """A complaint: a story, the original that it is said to copy, if it is known, and who says so."""

    story_id: ListedId = Field(description="The story complained of.")
    original_id: ListedId | None = Field(default=None, description="The original, where it is on record.")
    original_text: str | None = Field(default=None, description="The text of the original, where it is not on record.")
    complainant: Name = Field(description="The name of who complains; moderators see it, no answer has it.")
    contact: Name = Field(description="An address of the complainant; moderators see it, no answer has it.")
    author_id: AuthorId | None = Field(default=None, description="The complainant's own, if an author of the platform.")
    statement: Statement = Field(description="What the complainant says.")

    @model_validator(mode="after")
    def _has_one_original(self) -> Self:
        if self.original_id is not None and self.original_text is not None:
            raise ValueError("give either original_id or original_text")
        return self


class ComplaintAnswerRequest(Request):
    """What the author or the complainant says to a complaint."""

    by: Literal["author", "complainant"]
    text: Statement


class ComplaintsQuery(BaseModel):
    """Which complaints to list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    closed: bool = Field(default=False, description="Those that are closed, the last one first; else the open ones.")
    first: int = Field(default=0, ge=0, le=MAX_ID, description="The position of the first, from 0.")
    limit: int = Field(default=50, ge=1, le=200, description="How many at most.")


class PermissionsQuery(BaseModel):
    """Which permissions to list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    author_id: AuthorId | None = Field(default=None, description="Those that this author gave or got.")
    story_id: ListedId | None = Field(default=None, description="Those for this story alone.")
    catalogue: str | None = Field(default=None, description="Those for this catalogue.")
    ended: bool = Field(default=False, description="Also those that ended or were revoked.")
    first: int = Field(default=0, ge=0, le=MAX_ID, description="The position of the first, from 0.")
    limit: int = Field(default=50, ge=1, le=200, description="How many at most.")


class CopiesQuery(BaseModel):
    """Which copies of an author's stories to list."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    since: Time | None = Field(default=None, description="Only copies flagged at or after this RFC 3339 time.")
    before: int | None = Field(default=None, ge=0, le=MAX_ID, description="The `next` of the page before.")
    limit: int = Field(default=50, ge=1, le=200, description="How many at most.")


class DigestQuery(BaseModel):
    """Which new copies to list, by author."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    since: Time = Field(description="Only copies flagged at or after this RFC 3339 time.")
    after: str | None = Field(default=None, description="The `next` of the page before.")
    limit: int = Field(default=100, ge=1, le=500, description="How many authors at most.")


# What the service answers.


class Answer(BaseModel):
    """What the service answers; a client ignores members that it does not know."""

    model_config = ConfigDict(frozen=True)


class Span(Answer):
    """Copied words: [start, end) of the story, and [match_start, match_end) of the match, counted from 0."""

    start: int
    end: int
    match_start: int
    match_end: int
    words: int = Field(description="The words of the story: end - start.")


class Scores(Answer):
    """The measurements of a pair; null where a text was missing."""

    hamming: int | None = Field(description="Bits of 128 in which the SimHashes differ.")
    jaccard: float | None = Field(description="Jaccard similarity of the word 2-shingles, 0 to 1.")
    containment: float | None = Field(description="The share of the story's shingles that occur in the match.")
    matched_containment: float | None = Field(description="The share of the match's shingles that occur in the story.")
    longest_run_words: int | None = Field(description="Words of the longest run that stands in both.")
    copied_words: int | None = Field(description="Words copied, edits, repetitions and common passages not counted.")


class Match(Answer):
    """A stored story that the checked one would be flagged with."""

    story_id: ShownId
    title: str | None
    author_id: str | None
    path: str | None
    published_at: str | None
    catalogue: str | None = Field(description="The catalogue of a work of the reference; null for a story.")
    kind: str = Field(description="`exact`, `near`, `similar`, `partial`, `transliterated`, `passage` or `rewritten`.")
    similarity: float = Field(description=SIMILARITY)
    scores: Scores
    estimated: bool = Field(description="Whether the match's text was missing, so that the scores are estimates.")
    permission_id: int | None = Field(
        default=None, description="The permission that covers the use of the match, which then counts for nothing."
    )
    spans: list[Span]


class CheckAnswer(Answer):
    """The result of a check; the most severe match comes first."""

    story_id: ShownId | None
    verdict: Verdict
    similarity: float = Field(description="The share of the words that stand in earlier stories by others, 0 to 1.")
    left_out: ShownId | None = Field(
        default=None,
        description="Of a check: the `story_id`, if a story is on record under it, which is no match of itself.",
    )
    matches: list[Match]
    words: int
    fingerprint_version: str
    estimated: bool = Field(description="Whether the answer comes from a part of the evidence only.")
    reasons: list[str] = Field(description="Why it is estimated.")
    took_ms: float


class RemovedMatch(Answer):
    """A text that was removed from an author with the verdict plagiarism, and that a later story matches."""

    author_id: str
    removed_at: str
    kind: str
    similarity: float = Field(description="Estimated, 0 to 1: the text is gone.")


class Stored(Answer):
    """A story as it is on record."""

    story_id: ShownId
    language: str
    title: str | None
    author_id: str | None
    path: str | None
    published_at: str | None
    words: int
    copied_words: int = Field(description="Words that stand in earlier stories by others.")
    similarity: float = Field(description="Their share of the words, 0 to 1.")
    hidden: bool = Field(description="Whether moderators ask to hide it until they have decided it.")
    removed_matches: list[RemovedMatch] = Field(
        default_factory=list, description="What it matches of the texts that were removed with the verdict plagiarism."
    )


class ProvedText(Answer):
    """A text that a story had: when it was seen first, and its path to the root of the tree."""

    position: int
    seen_at: int = Field(description="Milliseconds since 1970 in UTC.")
    text_sha256: str
    path: list[str]


class ProofAnswer(Answer):
    """Since when the texts of a story are known, as `neardup verify-proof` takes it."""

    head: str = Field(description="The signed head of the log.")
    story: str
    entries: list[ProvedText]
    body: str = Field(description="The selector by which the text was found in its page.")
    strip: list[str] = Field(description="The selectors of what was left out of it.")


class Draft(Answer):
    """A draft as it was saved last."""

    story_id: ShownId
    language: str
    title: str | None
    author_id: str
    words: int
    saved_at: str
    expires_at: str


class DiscardedDraft(Answer):
    """There is no draft with this id any more."""

    story_id: ShownId


class RecordedMatch(Answer):
    """A flagged pair of a stored story, with the copied words [start, end) of either side."""

    story_id: ShownId
    title: str | None
    author_id: str | None
    path: str | None
    published_at: str | None
    catalogue: str | None = Field(description="The catalogue of a work of the reference; null for a story.")
    kind: str
    similarity: float = Field(description=SIMILARITY)
    status: str = Field(description="`open`, `permitted`, or the verdict of a moderator.")
    scores: Scores
    estimated: bool
    earlier: bool | None = Field(description="Whether the match was published earlier; null if that is not known.")
    spans: list[tuple[int, int]]
    match_spans: list[tuple[int, int]]


class MatchesAnswer(Answer):
    """The flagged pairs of a stored story; the most severe match comes first."""

    story_id: ShownId
    matches: list[RecordedMatch]


class Excerpt(Answer):
    """A passage in one story: its words [word, word + words), its text, and some text before and after it."""

    word: int
    words: int
    before: str
    text: str
    after: str


class CopiedPassage(Answer):
    """A run of words that stands in both stories, in another script perhaps."""

    words: int = Field(description="The words of the side that has fewer.")
    a: Excerpt
    b: Excerpt


class CompareAnswer(Answer):
    """What two stories share; in the scores, the story is a and the match is b."""

    kind: str | None = Field(description="The kind of the match by the configured thresholds; null if neither copies.")
    similarity: float = Field(description=SIMILARITY)
    scores: Scores
    share_a: float = Field(description="The share of a's words that stand in `spans_a`.")
    share_b: float
    spans_a: list[tuple[int, int]] = Field(
        description="The copied words [start, end) of a, edits inside them included, common passages not."
    )
    spans_b: list[tuple[int, int]]
    passages: list[CopiedPassage] = Field(description="The runs of equal words in these spans, the longest first.")
    took_ms: float


class AuthorToken(Answer):
    """A token by which an author reads where copies of the own stories stand."""

    author_id: str
    token: str
    expires_at: str


class AuthorCopy(Answer):
    """A story by another author that holds text of one of the author's stories."""

    own_story_id: ShownId
    own_title: str
    story_id: ShownId
    title: str
    link: str | None = Field(description="Its address on the platform, by `content.link`.")
    published_at: str | None
    kind: str
    similarity: float = Field(description=SIMILARITY)
    status: str = Field(description="`open`, `permitted`, or the verdict of a moderator.")
    flagged_at: str = Field(description="Since when the copy is known.")
    is_later: bool = Field(description="Whether it is known to have been published after the author's story.")


class AuthorCopies(Answer):
    """The copies of an author's stories, the latest flag first; `next` is for the next page, null on the last one."""

    author_id: str
    copies: list[AuthorCopy]
    next: int | None


class AuthorNews(Answer):
    """The new copies of an author's stories: how many, and the latest of them."""

    author_id: str
    total: int
    copies: list[AuthorCopy]


class Digest(Answer):
    """The authors with new copies; `next` is for the next page, null on the last one."""

    authors: list[AuthorNews]
    next: str | None


class Thresholds(Answer):
    """What makes a pair a copy, in the language of the story, as it was configured."""

    hamming: int
    jaccard: float
    containment: float
    passage_words: int
    rare_share: float


class ComparedWith(Answer):
    """A story that a complaint's story was compared with; of an original's text there is no id."""

    story_id: ShownId | None
    title: str | None
    kind: str | None = Field(description="The kind of the match; null if it is no copy.")
    similarity: float = Field(description=SIMILARITY)
    hamming: int | None
    jaccard: float | None
    containment: float | None = Field(description="The share of the story's shingles that occur in the other.")
    longest_run_words: int | None
    copied_words: int | None


class SharedPassage(Answer):
    """The beginning of a run of words that stands in both, and the number of its words."""

    words: int
    original: str
    story: str


class ComplaintEvidence(Answer):
    """What a comparison shows, at the time of the complaint."""

    made_at: str
    compared_with: Literal["story", "text", "all"] = Field(
        description="The named original, its text, or all stories on record, as a check does."
    )
    compared: int = Field(description="How many that are.")
    thresholds: Thresholds
    kind: str | None = Field(description="The most severe kind of `matches`; null if the story is no copy.")
    similarity: float = Field(description="Of the pair; or of all: the share of the story copied from earlier ones.")
    matches: list[ComparedWith]
    near_miss: ComparedWith | None = Field(description="The most similar one, if none is copied.")
    passages: list[SharedPassage]
    estimated: bool
    reasons: list[str]


class ComplaintStep(Answer):
    """A step of a complaint; a note is an answer, or what a moderator wrote to it."""

    step: str
    at: str
    note: str


class Complaint(Answer):
    """A complaint, without the name and the contact of the complainant."""

    number: int
    story_id: ShownId
    original_id: ShownId | None
    has_original_text: bool
    statement: str = Field(description="Empty once the complainant was forgotten.")
    received_at: str
    due_at: str
    closed_at: str | None
    outcome: str | None = Field(
        description="A verdict, `upheld` or `dismissed` by a moderator, or `story_removed`; null while it is open."
    )
    evidence: ComplaintEvidence | None = Field(description="Null if the story could not be compared: see `log`.")
    log: list[ComplaintStep]


class ComplaintsAnswer(Answer):
    """A part of the complaints, and how many there are."""

    total: int
    complaints: list[Complaint]


class ForgottenComplainant(Answer):
    """The complaint has no name, contact and statement any more."""

    number: int


class Forgotten(Answer):
    """The story is not on record any more."""

    story_id: ShownId


class Permission(Answer):
    """Who may use whose text.  Times are in RFC 3339."""

    permission_id: int
    granted_by: str | None
    story_id: ShownId | None
    serial: str | None
    catalogue: str | None
    granted_to: str | None = Field(description="Null for everyone.")
    licence: str | None
    note: str
    since: str | None
    until: str | None
    entered_by: str = Field(description="A moderator, the name of a token, or a user of the machine.")
    entered_at: str
    revoked_by: str | None
    revoked_at: str | None
    state: str = Field(description="`in_force`, `later`, `ended` or `revoked`.")


class PermissionsAnswer(Answer):
    """The permissions, those entered last first."""

    total: int = Field(description="How many there are without `first` and `limit`.")
    permissions: list[Permission]


class InvalidMember(Answer):
    """A member of the request that is wrong."""

    where: str
    what: str


class Problem(Answer):
    """A failure, by RFC 9457.

    With `fail_open`, the service could not decide: publish the story, and check it later.
    """

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None = None
    fail_open: bool = False
    reason: str | None = Field(
        default=None,
        description="Why a page or text yields no story, such as `too_short`, or a permission is not entered.",
    )
    errors: list[InvalidMember] = Field(default_factory=list)
    complaint: int | None = Field(default=None, description="The number of the first complaint, of a duplicate.")


def problem_of(refused: "Refused", request_id: str | None = None) -> Problem:
    """A refusal as an answer.  A failure of the service itself fails open: it says nothing about the story."""
    return Problem(
        **refused.members,
        request_id=request_id,
        fail_open=refused.problem.status in (408, 429, 500, 503),
        reason=refused.reason,
        errors=[InvalidMember(where=wrong.where, what=wrong.what) for wrong in refused.errors],
        complaint=refused.complaint,
    )


class BatchAnswer(Answer):
    """The result of each story of a batch, in their order."""

    results: list[CheckAnswer | Problem]
