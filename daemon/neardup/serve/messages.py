"""The messages of the HTTP API as models: the ids of stories, and what is sent and answered about texts and stories.

The OpenAPI document, the service and the clients share them.  A request is strict: nothing is converted, and an unknown
member is an error.  Answers may get further members: a client ignores those that it does not know.
"""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from neardup.records import ShownId, format_time, show_id
from neardup.source.parse import LONGEST_NAME, MAX_ID, make_printable, parse_id, parse_name, parse_time

if TYPE_CHECKING:
    from neardup.http.requests import Refused

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
        return show_id(self.number, self.name)


def parse_story_id(listed: ShownId) -> StoryId:
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
        parse_story_id(value)
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


def _require_one_of(name: str, *others: str) -> dict[str, Any]:
    """A JSON schema: exactly one of these members is given.  With `oneOf`, generators of clients lose the members."""
    given = {"required": [name], "properties": {name: {"not": {"type": "null"}}}}
    if not others:
        return given
    no_others = {"properties": {other: {"type": "null"} for other in others}}
    return {"if": given, "then": no_others, "else": _require_one_of(*others)}


def _require_one(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        raise ValueError(f"give either {' or '.join(names)}")


class TextRequest(Request):
    """The text of a story, or its page as HTML, and what is known of it."""

    model_config = ConfigDict(json_schema_extra=_require_one_of("text", "html"))

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


class ComparedStory(Request):
    """One side of a comparison: a stored story, a text or a page."""

    model_config = ConfigDict(json_schema_extra=_require_one_of("story_id", "text", "html"))

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


# What the service answers.


# A time in RFC 3339, which may be given in milliseconds.
ShownTime = Annotated[str, BeforeValidator(lambda at: format_time(at) if isinstance(at, int) else at)]


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
    published_at: ShownTime | None
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
    removed_at: ShownTime
    kind: str
    similarity: float = Field(description="Estimated, 0 to 1: the text is gone.")


class Stored(Answer):
    """A story as it is on record."""

    story_id: ShownId
    language: str
    title: str | None
    author_id: str | None
    path: str | None
    published_at: ShownTime | None
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
    saved_at: ShownTime
    expires_at: ShownTime


class DiscardedDraft(Answer):
    """There is no draft with this id any more."""

    story_id: ShownId


class RecordedMatch(Answer):
    """A flagged pair of a stored story, with the copied words [start, end) of either side."""

    story_id: ShownId
    title: str | None
    author_id: str | None
    path: str | None
    published_at: ShownTime | None
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


class Forgotten(Answer):
    """The story is not on record any more."""

    story_id: ShownId


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


def make_problem(refused: "Refused", request_id: str | None = None) -> Problem:
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
