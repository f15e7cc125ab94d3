"""What is checked, and what a check finds: the matches of a text, its similarity and the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from neardup.config import Detection
from neardup.core.page import PreparedStory
from neardup.core.publication_order import Dates, earlier, sort_key
from neardup.core.verify.tiers import COPIED_WORDS, SIMILAR, tier_of
from neardup.ledger.similarities import share_of, words_in
from neardup.records import NO_SPANS, Assessment, Kind, Language, Signals, rfc3339

CheckVerdict = Literal["clear", "review", "copy"]
CopiedSpan = tuple[int, int, int, int]  # the words [start, end) of the text, and the words [start, end) of the match
NO_ID = 2**63 - 1  # of a text that has none: it sorts behind every story


@dataclass(frozen=True, slots=True)
class Submission:
    """A text to check or to store, with what is known of its story; `published_at` is in milliseconds.

    `name` is the id in the listing where that is no integer; `story_id` is then made from it.
    """

    language: Language
    text: PreparedStory
    story_id: int | None = None
    name: str | None = None
    author_id: str | None = None
    title: str | None = None
    published_at: int | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """A story that a text would be flagged against.

    `containment` is the share of the text's shingles that occur in the story, `matched_containment` the share of the
    story's shingles that occur in the text.  If the story's text could not be read, they and `jaccard` are `estimated`
    from the signatures, or None without signatures, `copied_words` is None, and there are no `spans`.  `published_at`
    is in milliseconds.  A work of the reference has a `catalogue`.
    """

    kind: Kind
    story_id: int
    hamming: int
    jaccard: float | None
    containment: float | None
    matched_containment: float | None
    longest_run_words: int | None
    copied_words: int | None
    estimated: bool
    title: str | None
    author_id: str | None
    published_at: int | None
    path: str | None
    name: str | None
    catalogue: str | None
    licence: str | None
    spans: tuple[CopiedSpan, ...]

    def as_dict(self) -> dict[str, Any]:
        """The match as JSON-serialisable values, its time in RFC 3339."""
        return asdict(self) | {"published_at": rfc3339(self.published_at)}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The answer of a check; the most severe match comes first.

    - `verdict`: "copy" if a whole story by another author matches, or the similarity is `detection.copy_similarity` or
      more; "review" if there is any other match; else "clear".
    - `similarity`: the share, 0 to 1, of the text's words that stand in earlier stories by others, common passages
      apart.
    - `estimated`: whether a part of the answer is missing or only estimated, for these `reasons`.
    - `words`: the number of words in the text.
    """

    verdict: CheckVerdict
    similarity: float
    matches: list[Match]
    estimated: bool
    reasons: tuple[str, ...]
    fingerprint_version: str
    words: int

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON-serialisable values, times in RFC 3339."""
        return asdict(self) | {"matches": [match.as_dict() for match in self.matches]}


class Verified(NamedTuple):
    """A story that would be flagged: its row of the ledger's `described`, and the assessment; the text is side a."""

    row: Mapping[str, Any]
    kind: Kind
    assessment: Assessment
    spans: tuple[CopiedSpan, ...]


def result_of(
    submission: Submission,
    verified: Sequence[Verified],
    detection: Detection,
    version: str,
    reasons: Sequence[str],
) -> CheckResult:
    """The result of a check that found these stories, and did without something for these `reasons`."""
    shown = sorted((one for one in verified if not _is_hidden(one, submission, detection)), key=_rank)
    words = submission.text.fingerprint.words
    sources = [one for one in shown if _is_by_another(one, submission) and _is_earlier(one, submission)]
    copied = np.concatenate([NO_SPANS, *(one.assessment.spans_a for one in sources)])
    similarity = share_of(words_in(copied), words)
    return CheckResult(
        verdict=_verdict(submission, shown, similarity >= detection.copy_similarity),
        similarity=similarity,
        matches=[_match(one) for one in shown],
        estimated=bool(reasons),
        reasons=tuple(reasons),
        fingerprint_version=version,
        words=words,
    )


def _verdict(submission: Submission, shown: Sequence[Verified], is_similar: bool) -> CheckVerdict:
    whole = tier_of(SIMILAR).severity
    is_copy = any(
        tier_of(one.kind).severity <= whole
        and _is_by_another(one, submission)
        and not _is_known_to_be_later(one, submission)
        for one in shown
    )
    if is_copy or is_similar:
        return "copy"
    return "review" if shown else "clear"


def _is_by_another(one: Verified, submission: Submission) -> bool:
    """Whether the authors differ; an author who is not known counts as another."""
    return submission.author_id is None or one.row["author_id"] != submission.author_id


def _is_hidden(one: Verified, submission: Submission, detection: Detection) -> bool:
    own_text_expected = detection.same_author == "hide" and tier_of(one.kind).own_text_expected
    return own_text_expected and not _is_by_another(one, submission)


def _is_earlier(one: Verified, submission: Submission) -> bool:
    """Whether the story comes before the text in the order of the ledger's view `sources`."""
    story_id = NO_ID if submission.story_id is None else submission.story_id
    return sort_key(one.row["published_at"], one.row["id"]) < sort_key(submission.published_at, story_id)


def _is_known_to_be_later(one: Verified, submission: Submission) -> bool:
    story = Dates(one.row["published_at"], catalogue=one.row["catalogue"])
    return earlier(Dates(submission.published_at), story) == "a"


def _rank(one: Verified) -> tuple[int, float, int]:
    """The sort key, in the order of an export: the most severe kind first, and within a kind the strongest match."""
    tier = tier_of(one.kind)
    return tier.severity, -tier.strength(one.assessment.signals), one.row["id"]


def _match(one: Verified) -> Match:
    row, signals = one.row, one.assessment.signals
    return Match(
        kind=one.kind,
        story_id=row["id"],
        hamming=signals.hamming,
        jaccard=signals.jaccard,
        containment=signals.containment_a,
        matched_containment=signals.containment_b,
        longest_run_words=signals.longest_run_words,
        copied_words=_copied_words(signals),
        estimated=signals.estimated,
        title=row["title"],
        author_id=row["author_id"],
        published_at=row["published_at"],
        path=row["path"],
        name=row["name"],
        catalogue=row["catalogue"],
        licence=row["licence"],
        spans=one.spans,
    )


def _copied_words(signals: Signals) -> int | None:
    return int(signals.extra[COPIED_WORDS]) if COPIED_WORDS in signals.extra else None
