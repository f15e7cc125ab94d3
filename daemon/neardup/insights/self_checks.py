"""The self-checks, which measure how much the live index misses: canaries after each daily run, the audit by a command.

Canaries are copies of stories on record, made with known edits and looked up.  Nothing of a copy is stored.  A copy is
found if a check of its text matches the story that it was made of.

The audit compares some of the day's stories with all others, without the index.  It nominates by reading all
fingerprints and all passage hashes, wider than a lookup does, verifies the pairs on the texts, and compares them with
the flags on record.  Each pair that should be flagged and is not has a reason.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from enum import StrEnum

from msgspec import Struct

from neardup.app import App, make_checker, open_readers
from neardup.core.candidates.select import is_worth_comparing
from neardup.core.fingerprint.word_hashes import MIN_SHARED, PassageHashes
from neardup.core.page import prepare
from neardup.core.verify.scores import assess_all
from neardup.core.verify.text import Text
from neardup.insights.corpus import COPIES, Corpus, Original, PlantedStory, plant
from neardup.insights.edits import OTHER_SCRIPT, name_chapters, name_replaced
from neardup.ledger import now_ms, self_checks, stories, story_rows, versions
from neardup.ledger.self_checks import Measure, OnRecord, Pair, Recall, Trial
from neardup.nomination.exhaustive import WideMatches, match_fingerprints, match_passages
from neardup.nomination.passages import CommonHashes
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.text_cache import Texts
from neardup.pipeline.run_lifecycle import Hook
from neardup.pipeline.summary import Progress, Summary, Watch
from neardup.query.check import Checker, Submission
from neardup.records import Assessment, Candidate, Change, PairedStory, ShownId, Story, is_work
from neardup.telemetry.log import log

EDITS = (name_replaced(0.05), "50% foreign text appended", name_chapters(3), "joiners inserted", OTHER_SCRIPT)
CANARIES = [copy for copy in COPIES if copy.name in EDITS]
WORDS = range(200, 5_000)  # of a story that is copied: shorter ones are missed by chance, longer ones cost much
CHECKS_AT_ONCE = 4


def make_hook(app: App, watch: Watch) -> Hook:
    """A hook that measures after a run that ended; `run.canaries` is the number of stories of each language.

    `watch` is called when it begins: it may take a minute.
    """

    async def measure(summary: Summary) -> None:
        if summary.status == "done":
            watch(Progress(phase="looking up canaries"))
            await record_recalls(app)

    return Hook("canaries", measure)


async def record_recalls(app: App) -> None:
    """Measure, and record the recall by language and edit.  Raises what checks raise."""
    trials = await look_up_canaries(app)
    log.info("canaries", looked_up=len(trials), found=sum(trial.found for trial in trials))
    await app.ledger.do(self_checks.record_recalls, Measure.CANARY, now_ms(), self_checks.sum_recalls(trials))


async def look_up_canaries(app: App) -> list[Trial]:
    """Copy stories of each language, check the copies, and say of each whether its story was found."""
    originals_drawn = await app.reader.do(self_checks.draw_stories, app.config.run.canaries, WORDS)
    log.info("looking up canaries", stories=sum(map(len, originals_drawn.values())))
    trials: list[Trial] = []
    async with aclosing(open_readers(app.config)) as pool:
        texts = Texts(pool.read_to_compare)
        checker = make_checker(app, texts)
        for stories in originals_drawn.values():
            originals = await _read_originals(pool, stories)
            if len(originals) > 1:  # an edit takes words from another story
                trials += await _check_copies(checker, originals)
    return trials


async def _read_originals(pool: ReaderPool, stories: Sequence[Story]) -> list[Original]:
    """The stories whose pages can be read."""
    texts = await asyncio.gather(*map(pool.read_text, stories))
    return [
        Original(story.id, story.language, text.written)
        for story, text in zip(stories, texts, strict=True)
        if isinstance(text, Text)
    ]


async def _check_copies(checker: Checker, originals: Sequence[Original]) -> list[Trial]:
    corpus, texts = await asyncio.to_thread(plant, originals, CANARIES, now_ms())
    slots = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def check(story: PlantedStory, text: str) -> list[Trial]:
        async with slots:
            return await _check_copy(checker, corpus, story, text)

    checks = (check(story, text) for story, text in zip(corpus.stories, texts, strict=True) if story.copy)
    return [trial for trials in await asyncio.gather(*checks) for trial in trials]


async def _check_copy(checker: Checker, corpus: Corpus, story: PlantedStory, text: str) -> list[Trial]:
    """Check one copy, which counts for each story whose text it has; not at all if index or texts did not answer."""
    assert story.copy is not None
    prepared = await asyncio.to_thread(prepare, Text(text))
    assert isinstance(prepared, Text), "a copy of a story has words"
    language = corpus.originals[0].language
    result = await checker.check(Submission(language, prepared))
    if result.estimated:
        log.warning("a canary does not count", why=result.reasons)
        return []
    matches = {match.story_id for match in result.matches}
    ids = [corpus.originals[origin].id for origin in story.origins]
    return [Trial(language, story_id, story.copy.name, story_id in matches) for story_id in ids]


STORIES_AT_ONCE = 8  # whose texts and candidates are read together
INDEX_ENTRIES = "index entries"  # the subject of the recall of stories that are whole in the index


class Reason(StrEnum):
    """Why a pair is not flagged; the first that applies."""

    VERDICT = "a verdict suppresses it"  # does not count as missed
    PENDING = "it waits for verification"
    NEAR_MISS = "it was verified and found below the thresholds, with other texts or thresholds than now"
    GONE = "a story was removed or changed meanwhile"
    COMMON_PASSAGES = "it shares only common passages, and its fingerprints are outside the thresholds of nomination"
    OUTSIDE = "its fingerprints and passages are outside the thresholds of nomination"
    MISSING = "the index lacks entries of a story"
    MAX_MATCHES = "a story has more than max_matches matches or candidates"
    NOT_NOMINATED = "it was not nominated when it was written; `neardup sweep` finds it"


ON_RECORD = {
    OnRecord.SUPPRESSED: Reason.VERDICT,
    OnRecord.PENDING: Reason.PENDING,
    OnRecord.NEAR_MISS: Reason.NEAR_MISS,
}


async def find_reason(
    app: App, story_id: int, pair: Candidate, nominated: WideMatches, state: OnRecord | None
) -> Reason:
    """Why a pair of a sampled story is not flagged.  Raises Transient if the index does not answer."""
    if state is not None and state in ON_RECORD:
        return ON_RECORD[state]
    held = await app.reader.do(stories.read_fingerprints, [pair.a.id, pair.b.id])
    if len(held) < 2 or any(held[side.id].simhash != side.simhash for side in (pair.a, pair.b)):
        return Reason.GONE
    match = pair.b.id if pair.a.id == story_id else pair.a.id
    thresholds = app.config.detection.of(pair.language)
    by_whole_text = pair.is_of_one_language and is_worth_comparing(held[story_id], held[match], thresholds)
    if not by_whole_text and nominated.uncommon.get(match, 0) < MIN_SHARED:
        return Reason.COMMON_PASSAGES if nominated.shared.get(match, 0) >= MIN_SHARED else Reason.OUTSIDE
    if by_whole_text and any(await count_lacking_entries(app, list(held))):
        return Reason.MISSING
    is_cut = await app.reader.do(self_checks.has_matches_left_out, max(pair.a.id, pair.b.id))
    return Reason.MAX_MATCHES if is_cut else Reason.NOT_NOMINATED


async def count_lacking_entries(app: App, ids: Sequence[int]) -> list[int]:
    """How many entries the index lacks of each of these stories that it has applied and that have not changed since.

    An index that has lost its position should have applied all.
    """
    applied = (await app.index.read_position()).applied
    inserted = await app.reader.do(versions.list_inserts, ids)
    held: list[Change] = [change for change in inserted if applied is None or change.number <= applied]
    missing = await app.index.count_missing(held)
    existing = await app.reader.do(versions.find_existing_numbers, [change.number for change in held])
    return [n for change, n in zip(held, missing, strict=True) if change.number in existing]


class Miss(Struct, frozen=True):
    """A pair that should be flagged and is not; the sampled story comes first."""

    story_id: ShownId
    matched_id: ShownId
    language: str
    kind: str
    jaccard: float | None
    containment: float | None
    reason: Reason


class Audited(Struct, frozen=True):
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
    ids = await app.reader.do(self_checks.draw_latest, since, sample)
    async with aclosing(open_readers(app.config)) as pool:
        texts = Texts(pool.read_to_compare)
        hashes = await _read_passages(app, texts, ids)
        found = {story_id: WideMatches() for story_id in hashes}
        stories = await app.reader.do(versions.read_existing_fingerprints, hashes, ())
        compared = await match_fingerprints(app.reader, stories, app.config.detection, found)
        await match_passages(app.reader, app.passages, hashes, app.config.detection.common_passage, found)
        trials, misses, candidates = await _verify(app, texts, found)
    found_of = [*self_checks.sum_recalls(trials), *await _count_whole_in_index(app, ids)]
    await app.ledger.do(self_checks.record_recalls, Measure.AUDIT, now_ms(), found_of)
    left_out = sum(nominated.left_out for nominated in found.values())
    return Audited(len(ids), len(ids) - len(hashes), compared, candidates, left_out, found_of, misses)


async def _read_passages(app: App, texts: Texts, ids: Sequence[int]) -> dict[int, PassageHashes]:
    """The passage hashes of the stories whose pages still have the text on record, by their ids."""
    hashes: dict[int, PassageHashes] = {}
    for batch in _cut_batches(ids):
        sides = (await _read_sides(app, batch)).values()
        read = await texts.read(sides)
        for side in sides:
            if isinstance(text := read[side.text_hash], Text):
                hashes[side.id] = text.passages
    return hashes


def _cut_batches(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[start : start + STORIES_AT_ONCE] for start in range(0, len(ids), STORIES_AT_ONCE))


async def _read_sides(app: App, ids: Sequence[int]) -> dict[int, PairedStory]:
    rows = await app.reader.do(story_rows.describe, ids)
    return {story_id: PairedStory.of_row(row) for story_id, row in rows.items()}


async def _verify(app: App, texts: Texts, found: Mapping[int, WideMatches]) -> tuple[list[Trial], list[Miss], int]:
    """Verify what was nominated: which pairs should be flagged, which of these are not, and how many were verified."""
    trials, misses, verified = list[Trial](), list[Miss](), 0
    common = CommonHashes(app.reader)
    for batch in _cut_batches(list(found)):
        sides = await _read_sides(app, [*batch, *{match for story_id in batch for match in found[story_id].ids()}])
        pairs = [(story_id, pair) for story_id in batch for pair in _list_pairs(story_id, sides, found[story_id])]
        assessed = await _assess(app, texts, pairs, common)
        verified += len(assessed)
        state = await app.reader.do(self_checks.find_on_record, [_get_ids(pair) for _, pair, _ in assessed])
        shown = await app.reader.do(
            story_rows.read_shown_ids, {side.id for _, pair, _ in assessed for side in (pair.a, pair.b)}
        )
        for story_id, pair, assessment in assessed:
            if assessment is None or assessment.kind is None or assessment.signals.estimated:
                continue
            on_record, reason = state.get(_get_ids(pair)), None
            if on_record is not OnRecord.FLAGGED:
                reason = await find_reason(app, story_id, pair, found[story_id], on_record)
                misses.append(_make_miss(story_id, pair, assessment, reason, shown))
            if reason is not Reason.VERDICT:
                trials.append(Trial(pair.language, story_id, assessment.kind, reason is None))
    return trials, misses, verified


def _list_pairs(story_id: int, sides: Mapping[int, PairedStory], nominated: WideMatches) -> list[Candidate]:
    own = sides.get(story_id)
    matches = [sides[match] for match in sorted(nominated.ids()) if match in sides and not is_work(match)]
    return [Candidate(*sorted((own, match), key=lambda side: side.id)) for match in matches] if own else []


def _get_ids(pair: Candidate) -> Pair:
    return pair.a.id, pair.b.id


async def _assess(
    app: App, texts: Texts, pairs: Sequence[tuple[int, Candidate]], common: CommonHashes
) -> list[tuple[int, Candidate, Assessment | None]]:
    """Verify pairs; those of which a text could not be read are verified by their signatures."""
    compared, _ = await texts.read_pairs([pair for _, pair in pairs])
    of_language = {language: await common.of(language) for language in {pair.language for _, pair in pairs}}
    assessed = await asyncio.to_thread(assess_all, compared, app.config.detection.of, of_language.__getitem__)
    return [(story_id, pair, found) for (story_id, pair), found in zip(pairs, assessed, strict=True)]


def _make_miss(
    story_id: int, pair: Candidate, assessment: Assessment, reason: Reason, shown: Mapping[int, ShownId]
) -> Miss:
    match = pair.b.id if pair.a.id == story_id else pair.a.id
    signals = assessment.signals
    containment = max((x for x in (signals.containment_a, signals.containment_b) if x is not None), default=None)
    return Miss(
        shown[story_id], shown[match], pair.language, assessment.kind or "", signals.jaccard, containment, reason
    )


async def _count_whole_in_index(app: App, ids: Sequence[int]) -> list[Recall]:
    """How many of some stories have all their entries in the index; none for an index that cannot say."""
    lacks = await count_lacking_entries(app, ids)
    whole = sum(not n for n in lacks)
    return [Recall(self_checks.ALL, INDEX_ENTRIES, whole, len(lacks), whole, len(lacks))] if lacks else []
