"""Compares stories with their buckets, and repairs an index that has lost a part of its data.

A lookup cannot notice that a bucket has lost members.  So a run compares a sample of stories before its first lookup
and after its last one, which shows the loss of one bucket in ten thousand.  A story that lacks entries is written
again; if more than a hundredth of the sampled stories of a language do, the index is rebuilt.  Stories that were looked
up since the index was last known to be whole are looked up again, so that no pair is lost.

The scrub finds the rest: a single member that was lost, a key that was deleted, a block of a segment that the disk
forgot.  It compares some stories and segments after each daily run, so that in time all are compared, and goes on where
it ended the night before.  What a story lacks is written again, and the story is looked up: stories that were looked up
meanwhile may have missed it, and it finds them now, because a pair is found from either side.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from neardup.config import Detection
from neardup.errors import IndexDamaged, Transient
from neardup.index.passages.folder import Checked
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.ledger import Ledger, outbox, runs, versions
from neardup.ledger.candidates import Matches, nominate_again
from neardup.ledger.languages import count_by_language
from neardup.nomination.lookup import look_up_and_nominate, make_matches
from neardup.pipeline.index_sync import catch_up, rebuild
from neardup.pipeline.passage_sync import drop_damaged_segment
from neardup.pipeline.summary import IndexFaults
from neardup.records import Change
from neardup.telemetry.log import log
from neardup.telemetry.metrics import INDEX_MISSING, INDEX_REPAIRS, SCRUBBED

SAMPLE = 1_000  # stories, whose 37 or more buckets show a loss of one bucket in ten thousand
REBUILD_SHARE = 0.01
ROUNDS = 3  # of samples; where the third still finds a loss, there is more than repairs of single stories find
STORIES_PER_LOOKUP = 256
SCRUB_SECONDS = 60.0  # for each of the indexes, at most
STORIES_PER_STEP = 256
STORIES_A_NIGHT = 50_000  # at most


class IndexCheck(Struct):
    """Compares and repairs the index of one run, which must be in step with the ledger; counts in `faults`."""

    index: Index
    ledger: Ledger
    detection: Detection
    version: str
    faults: IndexFaults = field(default_factory=IndexFaults)

    async def run(self) -> None:
        """Compare until a sample is whole, repairing the index; then look up again what needs it.

        Raises Transient if the index does not answer; another call does the rest.
        """
        await self._repair()
        # a sweep that is owed finds all pairs
        if await self.ledger.do(outbox.are_lookups_in_doubt) and not await self.ledger.do(runs.owes_sweep):
            await self._look_up_again()
        await self.ledger.do(outbox.prove_lookups)

    async def _repair(self) -> None:
        """Repair the index until a sample is whole."""
        for nth in range(ROUNDS):
            try:
                incomplete, is_wide = await self._compare()
                if not incomplete and not is_wide:
                    return
                if is_wide or nth == ROUNDS - 1:
                    await self._rebuild()
                    return
                await self.index.restore(incomplete)
            except IndexDamaged:
                self.faults.rebuilds += 1
                await catch_up(self.index, self.ledger, self.version)
                return
            INDEX_REPAIRS.labels("restored").inc()
            self.faults.restored += len(incomplete)

    async def _compare(self) -> tuple[list[Change], bool]:
        """The stories of a new sample that lack entries, and whether the loss calls for a rebuild."""
        sample = await self.ledger.do(versions.sample_inserts, SAMPLE)
        missing = await self.index.count_missing(sample)
        incomplete = [story for story, n in zip(sample, missing, strict=True) if n]
        is_wide = is_widespread(sample, incomplete) or await counts_differ(self.index, self.ledger)
        self.faults.sampled += len(sample)
        if incomplete or is_wide:
            await self.ledger.do(outbox.doubt_lookups)  # before a repair hides the loss
            self.faults.incomplete += len(incomplete)
            self.faults.missing += sum(missing)
            INDEX_MISSING.inc(sum(missing))
            log.warning(
                "the index has lost a part of its data",
                sampled=len(sample),
                incomplete=len(incomplete),
                missing=sum(missing),
                repair="rebuild" if is_wide else "restore",
            )
        return incomplete, is_wide

    async def _rebuild(self) -> None:
        await rebuild(self.index, self.ledger, self.version)
        INDEX_REPAIRS.labels("rebuilt").inc()
        self.faults.rebuilds += 1

    async def _look_up_again(self) -> None:
        """Look up and nominate the stories that were looked up since the index was last known to be whole."""
        number = await self.ledger.do(outbox.read_proven_number)
        while page := await self.ledger.do(versions.list_inserts_after, number, STORIES_PER_LOOKUP):
            matches = await find_matches(self.index, self.ledger, self.detection, page)
            if matches is None:
                await catch_up(self.index, self.ledger, self.version)
                raise Transient("the index has lost data meanwhile", "index_lost")
            await self.ledger.do(nominate_again, matches)
            self.faults.looked_up_again += len(page)
            number = page[-1].number
        if self.faults.looked_up_again:
            log.info("stories were looked up again", stories=self.faults.looked_up_again)


async def find_matches(
    index: Index, ledger: Ledger, detection: Detection, stories: Sequence[Change]
) -> list[Matches] | None:
    """What stories of the index match when they are looked up again; None if the index has lost its data."""
    banded = {story.story_id: story.new for story in stories if story.new is not None}
    nominees = await look_up_and_nominate(index, ledger, detection, list(banded.items()))
    if nominees is None:
        return None
    return [
        make_matches(
            nominee.story_id, banded[nominee.story_id].language, detection, nominee.matches, left_out=nominee.capped
        )
        for nominee in nominees
    ]


def is_widespread(sample: Sequence[Change], incomplete: Sequence[Change]) -> bool:
    """Whether more than REBUILD_SHARE of the sampled stories of any language are incomplete."""
    sampled, lost = (Counter(story.new.language for story in stories if story.new) for stories in (sample, incomplete))
    return any(n > REBUILD_SHARE * sampled[language] for language, n in lost.items())


async def counts_differ(index: Index, ledger: Ledger) -> bool:
    """Whether the index counts clearly more or fewer stories of a language than the ledger has."""
    held: Mapping[str, int] = await ledger.do(count_by_language)
    counted = {str(language): n for language, n in (await index.count_stories()).items()}
    return compare_counts(held, counted) != {}


def compare_counts(held: Mapping[str, int], counted: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """The languages whose counts differ by more than one story and REBUILD_SHARE: those in the ledger and the index."""
    pairs = {language: (held.get(language, 0), counted.get(language, 0)) for language in {*held, *counted}}
    return {language: (a, b) for language, (a, b) in pairs.items() if abs(a - b) > max(1, REBUILD_SHARE * a)}


async def scrub(
    index: Index, passages: PassageIndex, ledger: Ledger, detection: Detection, faults: IndexFaults
) -> None:
    """Compare the next stories and segments, repair what is damaged, and count the stories in `faults`.

    Only the process with the ledger's lock may call it.  Raises Transient if the index does not answer; the next call
    goes on from the last step.
    """
    before = await ledger.do(outbox.read_scrubbing)
    if (await index.read_position()).applied == await ledger.do(outbox.read_last_seq):
        await _scrub_stories(index, ledger, detection)
    await _scrub_passages(passages, ledger)
    after = await ledger.do(outbox.read_scrubbing)
    faults.sampled += after.stories - before.stories
    faults.incomplete += after.incomplete - before.incomplete
    faults.missing += after.missing - before.missing
    faults.restored += after.incomplete - before.incomplete


async def _scrub_stories(index: Index, ledger: Ledger, detection: Detection) -> None:
    """Compare the next stories until time, stories of a night, or the round are over."""
    clock = asyncio.get_running_loop().time
    end, state = clock() + SCRUB_SECONDS, await ledger.do(outbox.read_scrubbing)
    for _ in range(STORIES_A_NIGHT // STORIES_PER_STEP):
        stories = await ledger.do(versions.list_inserts_after, state.number, STORIES_PER_STEP)
        if not stories:
            await ledger.do(outbox.put_scrubbing, state.end_round())
            return
        try:
            missing = await index.count_missing(stories)
        except IndexDamaged as error:  # the next run rebuilds it
            log.warning("the index is damaged; the next run rebuilds it", why=str(error))
            return
        incomplete = [story for story, n in zip(stories, missing, strict=True) if n]
        if incomplete:
            log.warning(
                "the index has lost a part of its data",
                incomplete=len(incomplete),
                missing=sum(missing),
                repair="restore",
            )
            state = replace(
                state,
                incomplete=state.incomplete + len(incomplete),
                missing=state.missing + sum(missing),
                restored=sorted({*state.restored, *(story.number for story in incomplete)}),
            )
            await ledger.do(outbox.put_scrubbing, state)  # before a repair hides the loss
            await index.restore(incomplete)
            INDEX_MISSING.inc(sum(missing))
            INDEX_REPAIRS.labels("restored").inc()
        if restored := [story for story in stories if story.number in state.restored]:
            matches = await find_matches(index, ledger, detection, restored)
            if matches is None:
                return
            await ledger.do(nominate_again, matches)
        SCRUBBED.inc(len(stories))
        state = replace(state, number=stories[-1].number, stories=state.stories + len(stories), restored=())
        await ledger.do(outbox.put_scrubbing, state)
        if clock() > end:
            return


async def _scrub_passages(passages: PassageIndex, ledger: Ledger) -> None:
    """Compare the checksums of the next segments, one at least, until time or the round are over."""
    state = await ledger.do(outbox.read_scrubbing)
    checked = await asyncio.to_thread(_check_segments, passages, state.passages)
    for segment in checked:
        if segment.damage:
            await drop_damaged_segment(passages, segment.damage)
    damaged = sum(segment.damage is not None for segment in checked)
    last = checked[-1].last if checked else 0
    await ledger.do(outbox.put_scrubbing, replace(state, passages=last, damaged=state.damaged + damaged))


def _check_segments(passages: PassageIndex, after: int) -> list[Checked]:
    end, checked = time.monotonic() + SCRUB_SECONDS, list[Checked]()
    for segment in passages.check_segments(after):
        checked.append(segment)
        if time.monotonic() > end:
            break
    return checked
