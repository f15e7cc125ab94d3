"""Checks a text against the stories of a ledger, without storing anything: its matches, its similarity and the verdict.

`Checker` looks the text up, reads the stories that may match and verifies the pairs; `make_result` makes the answer of
what was found.
"""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from msgspec import Struct, to_builtins
from msgspec.structs import asdict, replace

from neardup.config import Detection
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.publication_order import Dates, Side, find_earlier, make_sort_key
from neardup.core.sets import union
from neardup.core.verify.scores import ComparedPair, assess_all
from neardup.core.verify.spans import count_words, measure_share, measure_similarity, pair_spans
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COPIED_WORDS, SIMILAR, find_tier
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.ledger import (
    Ledger,
    candidates,
    now_ms,
    permissions,
    serials,
    stories,
    story_rows,
    verification,
)
from neardup.ledger.serials import Described
from neardup.nomination.lookup import StoryProbe, TextMatches, TextNominator, read_facts
from neardup.nomination.passages import CommonHashes
from neardup.pages.text_cache import FoundText, NoText, Texts
from neardup.pipeline.passage_sync import PassageSync
from neardup.records import (
    NO_SPANS,
    Assessment,
    BandedFingerprint,
    Candidate,
    Kind,
    Language,
    MarkReason,
    PairedStory,
    ShownId,
    Signals,
    format_count,
    format_time,
    show_id,
)

CheckVerdict = Literal["clear", "review", "copy"]
CopiedSpan = tuple[int, int, int, int]  # the words [start, end) of the text, and the words [start, end) of the match
NO_ID = 2**63 - 1  # sorts a text without an id behind every story, as the newest
CHECKED_ID = 2**63 - 2  # stands for the id of such a text in lookups and in pairs
COPIED = ("open", "plagiarism", "quotation")  # the statuses that count as copied, as in the ledger's view `sources`
Assessed = tuple[Candidate, Assessment | None]  # the text is side a of both
Rows = Mapping[int, Mapping[str, Any]]  # of the ledger's view `described`, by id


class Submission(Struct, frozen=True):
    """A text to check or to store, with what is known of its story; `published_at` is in milliseconds.

    `name` is the id in the listing where that is no integer; `story_id` is then made from it.  What else the author of
    a draft wrote does not count.
    """

    language: Language
    text: Text
    story_id: int | None = None
    name: str | None = None
    author_id: str | None = None
    title: str | None = None
    published_at: int | None = None
    series_id: str | None = None
    is_draft: bool = False

    @property
    def shown(self) -> ShownId | None:
        """The id as the listing has it."""
        return None if self.story_id is None else show_id(self.story_id, self.name)


class Match(Struct, frozen=True):
    """A story that a text would be flagged against.

    `similarity` is that of the pair (see `core.verify.spans`).  `containment` is the share of the text's shingles that
    occur in the story, `matched_containment` the share of the story's shingles that occur in the text.  If the story's
    text could not be read, they and `jaccard` are `estimated` from the signatures, or None without signatures,
    `copied_words` is None, and there are no `spans`.  `published_at` is in milliseconds.  A work of the reference has a
    `catalogue`.  A match that a permission covers has its `permission_id`, and counts for nothing.
    """

    kind: Kind
    story_id: ShownId
    similarity: float
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
    catalogue: str | None
    licence: str | None
    spans: tuple[CopiedSpan, ...]
    permission_id: int | None

    def as_dict(self) -> dict[str, Any]:
        """The match as JSON-serialisable values, its time in RFC 3339."""
        return {**to_builtins(self), "published_at": format_time(self.published_at)}


class CheckResult(Struct, frozen=True):
    """The answer of a check; the most severe match comes first.

    - `verdict`: "copy" if a whole story by another author matches, or the similarity is `detection.copy_similarity` or
      more; "review" if there is any other match; else "clear".
    - `similarity`: the share, 0 to 1, of the text's words that stand in earlier stories by others, common passages
      apart.
    - `estimated`: whether a part of the answer is missing or only estimated, for these `reasons`.
    - `words`: the number of words in the text.
    - `left_out`: the id of the text's own story, which is on record and does not count; None where it is not.
    """

    verdict: CheckVerdict
    similarity: float
    matches: list[Match]
    estimated: bool
    reasons: tuple[str, ...]
    fingerprint_version: str
    words: int
    left_out: ShownId | None

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON-serialisable values, times in RFC 3339."""
        return asdict(self) | {"matches": [match.as_dict() for match in self.matches]}


class Verified(NamedTuple):
    """A story that would be flagged: its row of the ledger's `described`, and the assessment; the text is side a.

    A permission covers the copy, if there is a `permission_id`.
    """

    row: Mapping[str, Any]
    kind: Kind
    assessment: Assessment
    spans: tuple[CopiedSpan, ...]
    permission_id: int | None = None


def make_result(
    submission: Submission,
    verified: Sequence[Verified],
    detection: Detection,
    version: str,
    reasons: Sequence[str],
    *,
    is_on_record: bool,
) -> CheckResult:
    """The result of a check that found these stories, and did without something for these `reasons`.

    `is_on_record` says whether the story of the submission is one that the ledger holds.
    """
    shown = sorted((story for story in verified if not _is_hidden(story, submission, detection)), key=_rank)
    words = submission.text.fingerprint.words
    counted = [story for story in shown if story.permission_id is None]
    sources = [story for story in counted if _is_by_another(story, submission) and _is_earlier(story, submission)]
    copied = np.concatenate([NO_SPANS, *(source.assessment.spans_a for source in sources)])
    similarity = measure_share(count_words(copied), words)
    return CheckResult(
        verdict=_make_verdict(submission, counted, similarity >= detection.copy_similarity),
        similarity=similarity,
        matches=[_make_match(story, words) for story in shown],
        estimated=bool(reasons),
        reasons=tuple(reasons),
        fingerprint_version=version,
        words=words,
        left_out=submission.shown if is_on_record else None,
    )


def _make_verdict(submission: Submission, counted: Sequence[Verified], is_similar: bool) -> CheckVerdict:
    whole = find_tier(SIMILAR).severity
    is_copy = any(
        find_tier(story.kind).severity <= whole
        and _is_by_another(story, submission)
        and _find_earlier(story.row, submission) != "a"
        for story in counted
    )
    if is_copy or is_similar:
        return "copy"
    return "review" if counted else "clear"


def _is_by_another(story: Verified, submission: Submission) -> bool:
    """Whether the authors differ; an author who is not known counts as another."""
    return submission.author_id is None or story.row["author_id"] != submission.author_id


def _is_hidden(story: Verified, submission: Submission, detection: Detection) -> bool:
    reuse_expected = detection.same_author == "hide" and find_tier(story.kind).reuse_expected
    return (reuse_expected or submission.is_draft) and not _is_by_another(story, submission)


def _is_earlier(story: Verified, submission: Submission) -> bool:
    """Whether the story comes before the text in the order of the ledger's view `sources`."""
    story_id = NO_ID if submission.story_id is None else submission.story_id
    return make_sort_key(story.row["published_at"], story.row["id"]) < make_sort_key(submission.published_at, story_id)


def _find_earlier(row: Mapping[str, Any], submission: Submission) -> Side | None:
    """Whether the text (a) or a story was published before the other; None if that is not known."""
    return find_earlier(Dates(submission.published_at), Dates(row["published_at"], catalogue=row["catalogue"]))


def _rank(story: Verified) -> tuple[int, float, int]:
    """The sort key, in the order of an export: the most severe kind first, and within a kind the strongest match."""
    tier = find_tier(story.kind)
    return tier.severity, -tier.strength(story.assessment.signals), story.row["id"]


def _make_match(story: Verified, words: int) -> Match:
    row, signals = story.row, story.assessment.signals
    return Match(
        kind=story.kind,
        story_id=show_id(row["id"], row["name"]),
        similarity=measure_similarity(story.assessment, words, row["words"]),
        hamming=signals.hamming,
        jaccard=signals.jaccard,
        containment=signals.containment_a,
        matched_containment=signals.containment_b,
        longest_run_words=signals.longest_run_words,
        copied_words=_count_copied_words(signals),
        estimated=signals.estimated,
        title=row["title"],
        author_id=row["author_id"],
        published_at=row["published_at"],
        path=row["path"],
        catalogue=row["catalogue"],
        licence=row["licence"],
        spans=story.spans,
        permission_id=story.permission_id,
    )


def _count_copied_words(signals: Signals) -> int | None:
    return int(signals.extra[COPIED_WORDS]) if COPIED_WORDS in signals.extra else None


class Examined(Struct, frozen=True):
    """A text that was checked, with what it takes to store its story.

    `probe` is what was looked up, and `seen` the ledger's last change that the lookups are sure to have seen.
    `assessed` leaves out the pairs of which the other text could not be read for now.
    """

    probe: StoryProbe
    seen: int
    nominated: TextMatches
    assessed: Sequence[Assessed]
    result: CheckResult


class Checker:
    """Checks texts against the stories of a ledger; long-lived, and safe for concurrent checks.

    `texts` reads the candidates; one with the text hash of the checked text needs no reading.
    """

    def __init__(  # noqa: PLR0917 - each is a part of its own
        self, index: Index, passages: PassageIndex, ledger: Ledger, texts: Texts, detection: Detection, version: str
    ) -> None:
        self._nominator = TextNominator(index, PassageSync(passages, ledger), ledger, detection, version)
        self._ledger = ledger
        self._texts = texts
        self._detection = detection
        self._version = version
        self._common = CommonHashes(ledger)

    async def check(self, submission: Submission, *, deadline: float | None = None) -> CheckResult:
        """What a run would flag the story of a text for, if it were listed now.

        A story that is on record under the id of the submission does not count.  After `deadline` seconds the answer is
        made of what is there.  Raises Fatal for the index of another ledger or of another version of the fingerprints.
        """
        return (await self.examine(submission, deadline=deadline)).result

    async def examine(self, submission: Submission, *, deadline: float | None = None) -> Examined:
        """As `check`, with what it takes to store the story."""
        until = None if deadline is None else asyncio.get_running_loop().time() + deadline
        language, own_id = submission.language, submission.story_id
        own_id = CHECKED_ID if own_id is None else own_id
        text = submission.text
        own = text.fingerprint
        facts = await self._ledger.do(read_facts)
        banded = BandedFingerprint(language, own.simhash, own.signature)
        probe = StoryProbe(own_id, banded, np.frombuffer(own.passages, np.uint32))
        nominated = await self._nominator.nominate(probe, facts, until)
        rows, is_on_record = await self._ledger.do(_read_rows, own_id, nominated)
        checked = PairedStory.of(own_id, language, own)
        pairs = [Candidate(checked, PairedStory.of_row(row)) for row in rows.values()]
        texts, assessed, verified = dict[bytes, FoundText](), list[Assessed](), list[Verified]()
        if pairs:
            common_of = {spoken: await self._common.of(spoken) for spoken in {pair.b.language for pair in pairs}}
            common_of[language] = union(nominated.common, await self._common.of(language))
            texts = await self._texts.read((pair.b for pair in pairs if pair.b.text_hash != own.text_hash), until)
            assessed, spans = await asyncio.to_thread(self._assess, pairs, text, texts, common_of)
            flagged = await self._ledger.do(_find_flagged, submission, rows, assessed)
            verified = [
                Verified(rows[other], kind, assessment, spans[other], n) for other, kind, assessment, n in flagged
            ]
        reasons = (*_list_truncations(submission), *nominated.reasons, *_list_reasons(texts, verified))
        known = [
            (pair, assessment) for pair, assessment in assessed if texts.get(pair.b.text_hash) is not NoText.UNANSWERED
        ]
        result = make_result(submission, verified, self._detection, self._version, reasons, is_on_record=is_on_record)
        return Examined(probe, facts.last_change, nominated, known, result)

    def _assess(
        self,
        pairs: Sequence[Candidate],
        text: Text,
        texts: Mapping[bytes, FoundText],
        common_of: Mapping[Language, PassageHashes],
    ) -> tuple[list[Assessed], dict[int, tuple[CopiedSpan, ...]]]:
        """Verify the pairs as a run does; returns as well, by the id of the match, the spans of those that are copies.

        `common_of` has the hashes of the common passages of each language.
        """
        found = (texts.get(pair.b.text_hash) for pair in pairs)
        others = [other if isinstance(other, Text) else None for other in found]
        compared = [
            ComparedPair(pair, text, other)
            if pair.a.id < pair.b.id
            else ComparedPair(Candidate(pair.b, pair.a), other, text)
            for pair, other in zip(pairs, others, strict=True)
        ]
        assessed = [
            (pair, assessment if pair.a.id < pair.b.id else exchange_sides(assessment))
            for pair, assessment in zip(
                pairs, assess_all(compared, self._detection.of, common_of.__getitem__), strict=True
            )
        ]
        spans = {
            pair.b.id: _list_spans(assessment, text, other)
            for (pair, assessment), other in zip(assessed, others, strict=True)
            if assessment is not None and assessment.kind is not None
        }
        return assessed, spans


def exchange_sides(assessment: Assessment | None) -> Assessment | None:
    """The assessment of the same pair with b before a."""
    if assessment is None:
        return None
    signals, spans_a, spans_b = assessment.signals, assessment.spans_b, assessment.spans_a
    signals = replace(signals, containment_a=signals.containment_b, containment_b=signals.containment_a)
    return replace(assessment, signals=signals, spans_a=spans_a, spans_b=spans_b)


def _read_rows(db: sqlite3.Connection, story_id: int, nominated: TextMatches) -> tuple[Rows, bool]:
    """The stories that a text is compared with, and whether its own story is on record."""
    nominations = nominated.whole, nominated.by_passages
    ids = (other for others in nominations for other in candidates.leave_out_templates(db, story_id, others))
    return story_rows.describe(db, ids), bool(stories.read_stored_versions(db, [story_id]))


def _find_flagged(
    db: sqlite3.Connection, submission: Submission, rows: Rows, assessed: Sequence[Assessed]
) -> list[tuple[int, Kind, Assessment, int | None]]:
    """The matches, by id, that are copies and that no verdict says to be something else.

    Each comes with the permission that covers the copy, None if none does or a verdict goes before it.
    """
    found = []
    for pair, assessment in assessed:
        if assessment is not None and assessment.kind is not None:
            ids = min(pair.a.id, pair.b.id), max(pair.a.id, pair.b.id)
            status = verification.make_ruling_on_pair(db, ids, assessment.kind).status
            if status in COPIED:
                permission = _find_permission(db, submission, rows[pair.b.id]) if status == "open" else None
                found.append((pair.b.id, assessment.kind, assessment, permission))
    return found


def _find_permission(db: sqlite3.Connection, submission: Submission, row: Mapping[str, Any]) -> int | None:
    """The permission that covers what the text and a story share: the later one, or either, is the copy."""
    before, now = _find_earlier(row, submission), now_ms()
    author, other = submission.author_id, row["author_id"]
    found = None
    if before != "a":
        held = serials.read_chapters(db, [row["id"]]).get(row["id"])
        source = permissions.Source(row["id"], other, row["catalogue"], held and held.name)
        found = permissions.find_covering(db, source, author, now)
    if found is None and before != "b":
        serial = Described(author or "", submission.series_id, submission.title).name
        source = permissions.Source(submission.story_id, author, serial=serial)
        found = permissions.find_covering(db, source, other, now)
    return found


def _list_spans(assessment: Assessment, text: Text, other: Text | None) -> tuple[CopiedSpan, ...]:
    spans = pair_spans(text, other, assessment)
    return tuple((start, end, match_start, match_end) for start, end, match_start, match_end in spans.tolist())


def _list_truncations(submission: Submission) -> list[str]:
    return [
        f"only a part of the page was read, because of its {mark.detail}"
        for mark in submission.text.marks
        if mark.reason is MarkReason.TRUNCATED
    ]


def _list_reasons(texts: Mapping[bytes, FoundText], verified: Sequence[Verified]) -> list[str]:
    unanswered = sum(text is NoText.UNANSWERED for text in texts.values())
    gone = sum(texts.get(story.row["text_hash"]) is NoText.GONE for story in verified)
    reasons = []
    if unanswered:
        reasons.append(f"{unanswered:,} of {len(texts):,} texts to compare with could not be read, or not in time")
    if gone:
        estimated = format_count(
            gone,
            "match is estimated, because its page no longer has",
            "matches are estimated, because their pages no longer have",
        )
        reasons.append(f"{estimated} the text that was matched")
    return reasons
