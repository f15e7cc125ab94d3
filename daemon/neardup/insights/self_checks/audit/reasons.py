"""Why a pair that should be flagged is not."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from neardup.app import App
from neardup.core.candidates.select import worth_comparing
from neardup.core.fingerprint.passage_hashes import MIN_SHARED
from neardup.index.protocol import Completeness, read_bucket_sizes
from neardup.insights.self_checks.audit.nomination import Nominated
from neardup.ledger import audited, inserts, stories
from neardup.ledger.audited import OnRecord
from neardup.pairs import Candidate
from neardup.records import BandedFingerprint, Change


class Reason(StrEnum):
    """Why a pair is not flagged; the first that applies."""

    VERDICT = "a verdict suppresses it"  # does not count as missed
    PENDING = "it waits for verification"
    NEAR_MISS = "it was verified and found below the thresholds, with other texts or thresholds than now"
    GONE = "a story was removed or changed meanwhile"
    COMMON_PASSAGES = "it shares only common passages, and its fingerprints are outside the thresholds of nomination"
    OUTSIDE = "its fingerprints and passages are outside the thresholds of nomination"
    MISSING = "the index lacks entries of a story"
    CAPPED = "a bucket has more than max_bucket members"
    MAX_MATCHES = "a story has more than max_matches matches or candidates"
    NOT_NOMINATED = "it was not nominated when it was written; `neardup sweep` finds it"


ON_RECORD = {
    OnRecord.SUPPRESSED: Reason.VERDICT,
    OnRecord.PENDING: Reason.PENDING,
    OnRecord.NEAR_MISS: Reason.NEAR_MISS,
}


async def reason_of(app: App, story_id: int, pair: Candidate, nominated: Nominated, state: OnRecord | None) -> Reason:
    """Why a pair of a sampled story is not flagged.  Raises Transient if the index does not answer."""
    if state is not None and state in ON_RECORD:
        return ON_RECORD[state]
    held = await app.reader.do(stories.fingerprints, [pair.a.id, pair.b.id])
    if len(held) < 2 or any(held[side.id].simhash != side.simhash for side in (pair.a, pair.b)):
        return Reason.GONE
    match = pair.b.id if pair.a.id == story_id else pair.a.id
    thresholds = app.config.detection.of(pair.language)
    by_whole_text = pair.is_of_one_language and worth_comparing(held[story_id], held[match], thresholds)
    if not by_whole_text and nominated.uncommon.get(match, 0) < MIN_SHARED:
        return Reason.COMMON_PASSAGES if nominated.shared.get(match, 0) >= MIN_SHARED else Reason.OUTSIDE
    if by_whole_text and (found := await _fault_of_index(app, held, thresholds.max_bucket)) is not None:
        return found
    return Reason.MAX_MATCHES if await _is_full(app, pair, nominated, thresholds.max_matches) else Reason.NOT_NOMINATED


async def _is_full(app: App, pair: Candidate, nominated: Nominated, most: int) -> bool:
    """Whether a story has more matches or candidates by passages than it may have."""
    if sum(n >= MIN_SHARED for n in nominated.uncommon.values()) > most:
        return True
    open_matches = [await app.reader.do(audited.open_matches, side.id) for side in (pair.a, pair.b)]
    return max(open_matches) >= most


async def _fault_of_index(app: App, held: Mapping[int, BandedFingerprint], max_bucket: int) -> Reason | None:
    if any(await lacking(app, list(held))):
        return Reason.MISSING
    sizes = await read_bucket_sizes(app.index, list(held.values()))
    return Reason.CAPPED if any(n > max_bucket for n in sizes.values()) else None


async def lacking(app: App, ids: Sequence[int]) -> list[int]:
    """How many entries the index lacks of each of these stories that it has applied and that have not changed since.

    An index that has lost its position should have applied all.  None for an index that cannot say.
    """
    if not isinstance(app.index, Completeness):
        return []
    applied = (await app.index.position()).applied
    inserted = await app.reader.do(inserts.of_stories, ids)
    held: list[Change] = [one for one in inserted if applied is None or one.number <= applied]
    missing = await app.index.missing(held)
    existing = await app.reader.do(inserts.existing, [one.number for one in held])
    return [n for one, n in zip(held, missing, strict=True) if one.number in existing]
