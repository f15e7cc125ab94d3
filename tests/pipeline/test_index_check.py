"""The scrub compares every story and segment in time, and repairs what a run's own sample is too small to see."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from unittest.mock import AsyncMock, patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from neardup.config import Detection
from neardup.core.candidates.banding import Banding
from neardup.core.columns import Outcomes
from neardup.core.languages import LANGUAGES
from neardup.errors import Transient
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.index.redis import open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, candidates, outbox, passages, stories, versions
from neardup.ledger.outbox import Scrubbing
from neardup.pipeline import index_check
from neardup.pipeline.index_check import IndexCheck, compare_counts, scrub
from neardup.pipeline.index_sync import rebuild, replay
from neardup.pipeline.passage_sync import PassageSync, open_passages
from neardup.pipeline.summary import IndexFaults
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Fingerprint, Fingerprinted, Story

from tests.support.faults.index_damage import DamagedIndex, flipped_bits
from tests.support.languages import CODES, SAMPLED

BANDINGS = dict.fromkeys(LANGUAGES, Banding())
STORIES = 300
KINDS = ("sqlite", "documented", "compact")
VERSION = "v"


def fingerprint(text: int) -> Fingerprint:
    draw = random.Random(text)
    passages = b"".join(n.to_bytes(4, "little") for n in sorted({draw.getrandbits(32) for _ in range(8)}))
    return Fingerprint(draw.randbytes(16), draw.randbytes(16), draw.randbytes(64), 100, 99, passages)


class Scene(Struct):
    """A ledger with its indexes, all in step."""

    ledger: Ledger
    index: Index
    passages: PassageIndex
    damaged: DamagedIndex

    async def commit(self, *texts: tuple[int, int]) -> None:
        """Commit stories (id, text)."""
        outcomes = [Fingerprinted(Story(n, SAMPLED[n % 10]), fingerprint(text), None) for n, text in texts]
        await self.ledger.do(stories.commit, stories.Batch(Outcomes.of(outcomes), (), 1, {}, None))

    async def night(self) -> IndexFaults:
        """Scrub once; returns what was found."""
        faults = IndexFaults()
        await scrub(self.index, self.passages, self.ledger, Detection(), faults)
        return faults

    async def state(self) -> Scrubbing:
        return await self.ledger.do(outbox.read_scrubbing)

    async def lacking(self) -> list[int]:
        """The ids of the stories that lack entries."""
        held = await self.ledger.do(versions.list_inserts_after, 0, 10 * STORIES)
        missing = await self.index.count_missing(held)
        return [story.story_id for story, n in zip(held, missing, strict=True) if n]


@pytest.fixture(params=KINDS)
async def scene(request: pytest.FixtureRequest, redis_url: str, tmp_path: Path) -> AsyncIterator[Scene]:
    with closing(Ledger(tmp_path / "neardup.db")) as ledger:
        kind = request.param
        if kind == "sqlite":
            index: Index = SqliteIndex(ledger.path, BANDINGS)
        else:
            index = await open_redis(redis_url, BANDINGS, CODES, kind)
        with closing(await open_passages(ledger)) as passages:
            made = Scene(ledger, index, passages, DamagedIndex(kind, ledger.path, redis_url))
            await made.commit(*((n, n) for n in range(STORIES)))
            await rebuild(index, ledger, VERSION)
            sync = PassageSync(passages, ledger)
            await sync.start()
            await sync.settle(asyncio.Event())
            yield made
        await index.close()


async def test_a_twentieth_of_the_buckets_is_found_and_healed_the_same_night(scene: Scene) -> None:
    buckets = scene.damaged.keys("*:*:????")
    scene.damaged.delete(buckets[: len(buckets) // 20])
    lost = await scene.lacking()
    found = await scene.night()
    assert (found.sampled, found.incomplete) == (STORIES, len(lost)) and lost
    assert await scene.lacking() == [], "not healed"
    again = await scene.night()
    assert (again.sampled, again.incomplete, again.missing) == (STORIES, 0, 0)


async def test_thirty_whole_nights_find_nothing(scene: Scene) -> None:
    for _ in range(30):
        await scene.night()
    state = await scene.state()
    assert (state.incomplete, state.missing, state.damaged) == (0, 0, 0)
    assert state.round_ended_at is not None


async def test_each_story_is_compared_once_a_round(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_check, "STORIES_PER_STEP", 32)
    monkeypatch.setattr(index_check, "STORIES_A_NIGHT", 64)
    buckets = scene.damaged.keys("*:*:????")
    scene.damaged.delete(buckets[:1])
    lost, places = await scene.lacking(), [0]
    while (await scene.state()).round_ended_at is None:
        assert (await scene.night()).sampled <= 64
        places.append((await scene.state()).number)
    assert all(a < b for a, b in pairwise(places[:-1])), places
    state = await scene.state()
    assert (state.stories, state.incomplete) == (STORIES, len(lost))
    assert await scene.lacking() == []


@pytest.mark.parametrize("is_interrupted", [False, True])
async def test_a_pair_that_was_missed_meanwhile_is_nominated(scene: Scene, is_interrupted: bool) -> None:
    buckets = scene.damaged.keys("*:*:????")
    scene.damaged.delete(buckets)  # nothing finds any story
    await scene.commit((STORIES + 10, 10))  # a copy of story 10, which its lookup missed
    await replay(scene.index, scene.ledger, VERSION)
    if is_interrupted:  # after the repair, and before the lookup
        silent = AsyncMock(side_effect=Transient("the index does not answer", "index_down"))
        with patch.object(index_check, "find_matches", silent), pytest.raises(Transient):
            await scene.night()
    await scene.night()
    pending = await scene.ledger.do(candidates.list_pending, BEFORE_ALL, 10)
    assert [(pair.a.id, pair.b.id) for pair in pending] == [(10, STORIES + 10)]


@pytest.mark.parametrize("scene", ["documented", "compact"], indirect=True)
async def test_buckets_that_another_program_overwrote_are_rebuilt_once(scene: Scene) -> None:
    buckets = scene.damaged.keys("*:*:????")[:STORIES]
    scene.damaged.redis_each(buckets, ("SET", "foreign"))
    check = IndexCheck(scene.index, scene.ledger, Detection(), VERSION)
    await check.run()
    assert check.faults.rebuilds == 1, check.faults
    assert await scene.lacking() == [], "not rebuilt"


async def test_a_damaged_segment_is_removed_and_its_stories_are_missing(scene: Scene) -> None:
    [path] = scene.passages.list_files()
    changed = path.with_suffix(".changed")
    changed.write_bytes(flipped_bits(bytearray(path.read_bytes())))
    changed.replace(path)
    await scene.night()
    assert (await scene.state()).damaged == 1
    assert await scene.ledger.do(passages.count_missing, scene.passages.held) == STORIES
    await scene.night()
    assert (await scene.state()).damaged == 1


@given(st.integers(0, 1_000), st.integers(0, 1_000))
def test_counts_differ_by_more_than_one_story_and_the_share(held: int, counted: int) -> None:
    differing = compare_counts({"TAMIL": held, "HINDI": 3}, {"TAMIL": counted, "HINDI": 2})
    is_far = abs(held - counted) > 1 and abs(held - counted) * 100 > held
    assert differing == ({"TAMIL": (held, counted)} if is_far else {})
    assert compare_counts({}, {"TAMIL": 2}) == {"TAMIL": (0, 2)}, "stories that the ledger does not have"
