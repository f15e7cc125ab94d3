"""One audit: sample, nominate, verify on the texts, and compare with the flags on record."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np

from neardup.app import App, open_readers
from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.core.fingerprint.passage_hashes import passage_hashes as passage_hashes_of
from neardup.core.verify.scores import assess
from neardup.core.verify.shingled import Shingled
from neardup.insights.self_checks.audit.nomination import Nominated, by_fingerprints, by_passages
from neardup.insights.self_checks.audit.reasons import Reason, lacking, reason_of
from neardup.ledger import audited, fingerprint_arrays, now_ms, recalls, stories
from neardup.ledger.audited import OnRecord, Pair
from neardup.ledger.recalls import Measure, Recall, Tried
from neardup.pages.text_cache import Texts
from neardup.pairs import Assessment, Candidate, PairedStory
from neardup.pipeline.common_passages import CommonHashes
from neardup.records import is_work

STORIES_AT_ONCE = 8  # whose texts and candidates are read together
INDEX_ENTRIES = "index entries"  # the subject of the recall of stories that are whole in the index


@dataclass(frozen=True, slots=True)
class Miss:
    """A pair that should be flagged and is not; the sampled story comes first."""

    story_id: int
    matched_id: int
    language: str
    kind: str
    jaccard: float | None
    containment: float | None
    reason: Reason


@dataclass(frozen=True, slots=True)
class Audited:
    """What an audit found.

    `stories` were sampled, of which `unreadable` could not be read.  `compared` is the number of stories on record,
    `candidates` that of the pairs verified, `left_out` that of the pairs beyond the best 100 of a story.  Misses for a
    verdict do not count in `recalls`.
    """

    stories: int
    unreadable: int
    compared: int
    candidates: int
    left_out: int
    recalls: list[Recall]
    misses: list[Miss]


async def audit(app: App, sample: int, since: int) -> Audited:
    """Audit at most `sample` stories known since a time (milliseconds), and record their recall.

    Raises Transient if the index does not answer, and PassagesDamaged.
    """
    ids = await app.reader.do(audited.latest, since, sample)
    async with aclosing(open_readers(app.config)) as pool:
        texts = Texts(pool.shingled)
        hashes = await _passages_of(app, texts, ids)
        found = {story_id: Nominated() for story_id in hashes}
        ones = await app.reader.do(fingerprint_arrays.existing, hashes, ())
        compared = await by_fingerprints(app.reader, ones, app.config.detection, found)
        await by_passages(app.reader, app.passages, hashes, app.config.detection.common_passage, found)
        tried, misses, candidates = await _verify(app, texts, found)
    found_of = [*recalls.summed(tried), *await _whole_in_index(app, ids)]
    await app.ledger.do(recalls.record, Measure.AUDIT, now_ms(), found_of)
    left_out = sum(one.left_out for one in found.values())
    return Audited(len(ids), len(ids) - len(hashes), compared, candidates, left_out, found_of, misses)


async def _passages_of(app: App, texts: Texts, ids: Sequence[int]) -> dict[int, PassageHashes]:
    """The passage hashes of the stories whose pages still have the text on record, by their ids."""
    hashes: dict[int, PassageHashes] = {}
    for some in _batches(ids):
        sides = (await _sides(app, some)).values()
        read = await texts.read(sides)
        for side in sides:
            if isinstance(text := read[side.text_hash], Shingled):
                hashes[side.id] = np.union1d(passage_hashes_of(text.words), text.skeleton_hashes)
    return hashes


def _batches(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + STORIES_AT_ONCE] for start in range(0, len(ids), STORIES_AT_ONCE))


async def _sides(app: App, ids: Sequence[int]) -> dict[int, PairedStory]:
    rows = await app.reader.do(stories.describe, ids)
    return {
        story_id: PairedStory(**{name: row[name] for name in PairedStory.__slots__}) for story_id, row in rows.items()
    }


async def _verify(app: App, texts: Texts, found: Mapping[int, Nominated]) -> tuple[list[Tried], list[Miss], int]:
    """Verify what was nominated: which pairs should be flagged, which of these are not, and how many were verified."""
    tried, misses, verified = list[Tried](), list[Miss](), 0
    common = CommonHashes(app.reader)
    for some in _batches(list(found)):
        sides = await _sides(app, [*some, *{match for story_id in some for match in found[story_id].ids()}])
        pairs = [(story_id, pair) for story_id in some for pair in _pairs(story_id, sides, found[story_id])]
        assessed = await _assess(app, texts, pairs, common)
        verified += len(assessed)
        state = await app.reader.do(audited.on_record, [_ids(pair) for _, pair, _ in assessed])
        for story_id, pair, one in assessed:
            if one is None or one.kind is None or one.signals.estimated:
                continue
            on_record, reason = state.get(_ids(pair)), None
            if on_record is not OnRecord.FLAGGED:
                reason = await reason_of(app, story_id, pair, found[story_id], on_record)
                misses.append(_miss(story_id, pair, one, reason))
            if reason is not Reason.VERDICT:
                tried.append(Tried(pair.language, story_id, one.kind, reason is None))
    return tried, misses, verified


def _pairs(story_id: int, sides: Mapping[int, PairedStory], nominated: Nominated) -> list[Candidate]:
    own = sides.get(story_id)
    matches = [sides[match] for match in sorted(nominated.ids()) if match in sides and not is_work(match)]
    return [Candidate(*sorted((own, match), key=lambda side: side.id)) for match in matches] if own else []


def _ids(pair: Candidate) -> Pair:
    return pair.a.id, pair.b.id


async def _assess(
    app: App, texts: Texts, pairs: Sequence[tuple[int, Candidate]], common: CommonHashes
) -> list[tuple[int, Candidate, Assessment | None]]:
    """Verify pairs; those of which a text could not be read are verified by their signatures."""
    wanted = [side for _, pair in pairs if pair.a.text_hash != pair.b.text_hash for side in (pair.a, pair.b)]
    read = {text_hash: text for text_hash, text in (await texts.read(wanted)).items() if isinstance(text, Shingled)}
    of_language = {language: await common.of(language) for language in {pair.language for _, pair in pairs}}

    def assess_all() -> list[tuple[int, Candidate, Assessment | None]]:
        return [
            (
                story_id,
                pair,
                assess(
                    pair,
                    read.get(pair.a.text_hash),
                    read.get(pair.b.text_hash),
                    app.config.detection.of(pair.language),
                    of_language[pair.language],
                ),
            )
            for story_id, pair in pairs
        ]

    return await asyncio.to_thread(assess_all)


def _miss(story_id: int, pair: Candidate, one: Assessment, reason: Reason) -> Miss:
    match = pair.b.id if pair.a.id == story_id else pair.a.id
    signals = one.signals
    containment = max((x for x in (signals.containment_a, signals.containment_b) if x is not None), default=None)
    return Miss(story_id, match, pair.language, one.kind or "", signals.jaccard, containment, reason)


async def _whole_in_index(app: App, ids: Sequence[int]) -> list[Recall]:
    """How many of some stories have all their entries in the index; none for an index that cannot say."""
    lacks = await lacking(app, ids)
    whole = sum(not n for n in lacks)
    return [Recall(recalls.ALL, INDEX_ENTRIES, whole, len(lacks), whole, len(lacks))] if lacks else []
