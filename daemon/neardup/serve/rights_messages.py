"""The messages of the HTTP API about whose text it is: permissions, complaints, and the copies of an author's stories.

They follow the rules of `serve.messages`.
"""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from neardup.records import LONGEST_FIELD, LONGEST_PERSON, LONGEST_STATEMENT, ShownId
from neardup.serve.messages import SIMILARITY, Answer, AuthorId, ListedId, Request, ShownTime, Time
from neardup.source.parse import MAX_ID


class PermissionRequest(Request):
    """A permission to enter: an author permits all of their texts, a serial or a story, or a catalogue its works."""

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


class Query(BaseModel):
    """What a client asks for in an address: an unknown member is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ComplaintsQuery(Query):
    """Which complaints to list."""

    closed: bool = Field(default=False, description="Those that are closed, the last one first; else the open ones.")
    first: int = Field(default=0, ge=0, le=MAX_ID, description="The position of the first, from 0.")
    limit: int = Field(default=50, ge=1, le=200, description="How many at most.")


class PermissionsQuery(Query):
    """Which permissions to list."""

    author_id: AuthorId | None = Field(default=None, description="Those that this author gave or got.")
    story_id: ListedId | None = Field(default=None, description="Those for this story alone.")
    catalogue: str | None = Field(default=None, description="Those for this catalogue.")
    ended: bool = Field(default=False, description="Also those that ended or were revoked.")
    first: int = Field(default=0, ge=0, le=MAX_ID, description="The position of the first, from 0.")
    limit: int = Field(default=50, ge=1, le=200, description="How many at most.")


class CopiesQuery(Query):
    """Which copies of an author's stories to list."""

    since: Time | None = Field(default=None, description="Only copies flagged at or after this RFC 3339 time.")
    before: int | None = Field(default=None, ge=0, le=MAX_ID, description="The `next` of the page before.")
    limit: int = Field(default=50, ge=1, le=200, description="How many at most.")


class DigestQuery(Query):
    """Which new copies to list, by author."""

    since: Time = Field(description="Only copies flagged at or after this RFC 3339 time.")
    after: str | None = Field(default=None, description="The `next` of the page before.")
    limit: int = Field(default=100, ge=1, le=500, description="How many authors at most.")


# What the service answers.


class AuthorToken(Answer):
    """A token by which an author reads where copies of their own stories stand."""

    author_id: str
    token: str
    expires_at: ShownTime


class AuthorCopy(Answer):
    """A story by another author that holds text of one of the author's stories."""

    own_story_id: ShownId
    own_title: str
    story_id: ShownId
    title: str
    link: str | None = Field(description="Its address on the platform, by `content.link`.")
    published_at: ShownTime | None
    kind: str
    similarity: float = Field(description=SIMILARITY)
    status: str = Field(description="`open`, `permitted`, or the verdict of a moderator.")
    flagged_at: ShownTime = Field(description="Since when the copy is known.")
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
    at: ShownTime
    note: str


class Complaint(Answer):
    """A complaint, without the name and the contact of the complainant."""

    number: int
    story_id: ShownId
    original_id: ShownId | None
    has_original_text: bool
    statement: str = Field(description="Empty once the complainant was forgotten.")
    received_at: ShownTime
    due_at: ShownTime
    closed_at: ShownTime | None
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
    since: ShownTime | None
    until: ShownTime | None
    entered_by: str = Field(description="A moderator, the name of a token, or a user of the machine.")
    entered_at: ShownTime
    revoked_by: str | None
    revoked_at: ShownTime | None
    state: str = Field(description="`in_force`, `later`, `ended` or `revoked`.")


class PermissionsAnswer(Answer):
    """The permissions, those entered last first."""

    total: int = Field(description="How many there are without `first` and `limit`.")
    permissions: list[Permission]
