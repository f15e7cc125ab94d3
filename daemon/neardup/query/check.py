"""Check a text against the stories of a ledger, without storing anything."""

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from neardup.config import Detection
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.verify import skeletons
from neardup.core.verify.alignment import paired
from neardup.core.verify.scores import ComparedPair, assess_all
from neardup.core.verify.shingled import Shingled
from neardup.core.verify.tiers import LANGUAGES
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.ledger import Ledger, active_verdicts, candidates, stories
from neardup.pages.text_cache import NoText, Text, Texts
from neardup.pipeline.common_passages import CommonHashes
from neardup.query import lookups
from neardup.query.check_result import CheckResult, CopiedSpan, Submission, Verified, result_of
from neardup.query.lookups import Lookups, Nominated
from neardup.records import Assessment, BandedFingerprint, Candidate, Fingerprint, Kind, MarkReason, PairedStory

CHECKED_ID = -(2**63)  # the id of a text that has none; no story has it
COPIED = ("open", "plagiarism", "quotation")  # the statuses that count as copied, as in the ledger's view `sources`

Assessed = tuple[Candidate, Assessment | None]  # the text is side a of both
Rows = Mapping[int, Mapping[str, Any]]  # of the ledger's view `described`, by id


@dataclass(frozen=True, slots=True)
class Examined:
    """A text that was checked, with what it takes to store its story.

    `probe` is what was looked up, and `seen` the ledger's last change that the lookups are sure to have seen.
    `assessed` leaves out the pairs of which the other text could not be read for now.
    """

    fingerprint: Fingerprint
    text: Shingled
    probe: lookups.Text
    seen: int
    nominated: Nominated
    assessed: Sequence[Assessed]
    result: CheckResult


class Checker:
    """Checks texts against the stories of a ledger; long-lived, and safe for concurrent checks.

    `texts` reads the candidates; one with the text hash of the checked text needs no reading.
    """

    def __init__(  # noqa: PLR0917 - each is a part of its own
        self, index: Index, passages: PassageIndex, ledger: Ledger, texts: Texts, detection: Detection, version: str
    ) -> None:
        self._lookups = Lookups(index, passages, ledger, detection, version)
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
        own, text = submission.text.fingerprint, submission.text.shingled
        facts = await self._ledger.do(lookups.facts_of, own_id)
        banded = BandedFingerprint(language, own.simhash, own.signature)
        probe = lookups.Text(own_id, banded, np.frombuffer(own.passages, np.uint32))
        nominated = await self._lookups.nominate(probe, facts, until)
        rows = await self._ledger.do(_rows, own_id, nominated)
        checked = PairedStory(
            own_id, language, None, own.text_hash, own.simhash, own.signature, own.words, own.shingles
        )
        pairs = [Candidate(checked, _paired_story(row)) for row in rows.values()]
        texts, assessed, verified = dict[bytes, Text](), list[Assessed](), list[Verified]()
        if pairs:
            texts, known_common = await asyncio.gather(
                self._texts.read((one.b for one in pairs if one.b.text_hash != own.text_hash), until),
                self._common.of(language),
            )
            common = np.union1d(nominated.common, known_common)
            assessed, spans = await asyncio.to_thread(self._assess, pairs, text, texts, common)
            flagged = await self._ledger.do(_flagged, assessed)
            verified = [Verified(rows[other], kind, assessment, spans[other]) for other, kind, assessment in flagged]
        reasons = (*_truncations(submission), *nominated.reasons, *_reasons(texts, verified))
        known = [(pair, one) for pair, one in assessed if texts.get(pair.b.text_hash) is not NoText.UNANSWERED]
        result = result_of(submission, verified, self._detection, self._version, reasons)
        return Examined(own, text, probe, facts.last_change, nominated, known, result)

    def _assess(
        self, pairs: Sequence[Candidate], text: Shingled, texts: Mapping[bytes, Text], common: PassageHashes
    ) -> tuple[list[Assessed], dict[int, tuple[CopiedSpan, ...]]]:
        """Verify the pairs; returns as well, by the id of the match, the spans of those that are copies."""
        found = (texts.get(pair.b.text_hash) for pair in pairs)
        others = [other if isinstance(other, Shingled) else None for other in found]
        compared = [ComparedPair(pair, text, other) for pair, other in zip(pairs, others, strict=True)]
        assessed = list(zip(pairs, assess_all(compared, self._detection.of, lambda _: common), strict=True))
        spans = {
            pair.b.id: _spans(pair, assessment, text, other)
            for (pair, assessment), other in zip(assessed, others, strict=True)
            if assessment is not None and assessment.kind is not None
        }
        return assessed, spans


def _rows(db: sqlite3.Connection, story_id: int, nominated: Nominated) -> Rows:
    ids = (story for some in nominated[:2] for story in candidates.without_templates(db, story_id, some))
    return {story_id: dict(row) for story_id, row in stories.describe(db, ids).items()}


def _paired_story(row: Mapping[str, Any]) -> PairedStory:
    return PairedStory(**{name: row[name] for name in PairedStory.__slots__})


def _flagged(db: sqlite3.Connection, assessed: Sequence[Assessed]) -> list[tuple[int, Kind, Assessment]]:
    """The matches, by id, that are copies and that no verdict says to be something else."""
    found = []
    for pair, assessment in assessed:
        if assessment is not None and assessment.kind is not None:
            ids = min(pair.a.id, pair.b.id), max(pair.a.id, pair.b.id)
            if active_verdicts.ruling_on(db, ids, assessment.kind).status in COPIED:
                found.append((pair.b.id, assessment.kind, assessment))
    return found


def _spans(pair: Candidate, assessment: Assessment, text: Shingled, other: Shingled | None) -> tuple[CopiedSpan, ...]:
    if pair.a.text_hash == pair.b.text_hash:
        return ((0, pair.a.words, 0, pair.b.words),)
    if other is None:
        return ()
    if LANGUAGES in assessment.signals.extra:
        spans = skeletons.paired(text.skeleton, other.skeleton, assessment.spans_a, assessment.spans_b)
    else:
        spans = paired(text.words, other.words, assessment.spans_a, assessment.spans_b)
    return tuple((start, end, match_start, match_end) for start, end, match_start, match_end in spans.tolist())


def _truncations(submission: Submission) -> list[str]:
    return [
        f"only a part of the page was read, because of its {mark.detail}"
        for mark in submission.text.marks
        if mark.reason is MarkReason.TRUNCATED
    ]


def _reasons(texts: Mapping[bytes, Text], verified: Sequence[Verified]) -> list[str]:
    unanswered = sum(text is NoText.UNANSWERED for text in texts.values())
    gone = sum(texts.get(one.row["text_hash"]) is NoText.GONE for one in verified)
    reasons = []
    if unanswered:
        reasons.append(f"{unanswered:,} of {len(texts):,} texts to compare with could not be read, or not in time")
    if gone:
        reasons.append(f"{gone:,} matches are estimated, because their pages no longer have the text that was matched")
    return reasons
