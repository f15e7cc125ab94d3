"""The answers of the HTTP API: the OpenAPI document, the service and the clients share these models."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from neardup.serve.story_ids import ShownId

Verdict = Literal["clear", "review", "copy"]


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
    kind: str = Field(description="`exact`, `near`, `similar`, `partial`, `transliterated` or `passage`.")
    scores: Scores
    estimated: bool = Field(description="Whether the match's text was missing, so that the scores are estimates.")
    spans: list[Span]


class CheckAnswer(Answer):
    """The result of a check; the most severe match comes first."""

    story_id: ShownId | None
    verdict: Verdict
    similarity: float = Field(description="The share of the words that stand in earlier stories by others, 0 to 1.")
    matches: list[Match]
    words: int
    fingerprint_version: str
    estimated: bool = Field(description="Whether the answer comes from a part of the evidence only.")
    reasons: list[str] = Field(description="Why it is estimated.")
    took_ms: float


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


class RecordedMatch(Answer):
    """A flagged pair of a stored story, with the copied words [start, end) of either side."""

    story_id: ShownId
    title: str | None
    author_id: str | None
    path: str | None
    published_at: str | None
    catalogue: str | None = Field(description="The catalogue of a work of the reference; null for a story.")
    kind: str
    status: str = Field(description="`open`, or the verdict of a moderator.")
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
    """A passage in one story: the index of its first word, its text, and some text before and after it."""

    word: int
    before: str
    text: str
    after: str


class CopiedPassage(Answer):
    """A run of words that stands in both stories."""

    words: int
    a: Excerpt
    b: Excerpt


class CompareAnswer(Answer):
    """What two stories share; in the scores, the story is a and the match is b."""

    kind: str | None = Field(description="The kind of the match by the configured thresholds; null if neither copies.")
    scores: Scores
    share_a: float = Field(description="The share of a's words that stand in the passages.")
    share_b: float
    passages: list[CopiedPassage]
    took_ms: float


class Forgotten(Answer):
    """The story is not on record any more."""

    story_id: ShownId
    forgotten: bool = Field(description="Whether anything of it was on record.")


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
    reason: str | None = Field(default=None, description="Why a page or text yields no story, such as `too_short`.")
    errors: list[InvalidMember] = Field(default_factory=list)


class BatchAnswer(Answer):
    """The result of each story of a batch, in their order."""

    results: list[CheckAnswer | Problem]
