"""Laws: what a passage index lacks is read again, and only that; what cannot be read is counted by name."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.index.passages.index import PassageIndex
from neardup.ledger import Ledger, passages
from neardup.pages.results import PageResult, ReadFailed, read_singly
from neardup.pipeline import passage_sync
from neardup.pipeline.passage_sync import PassageReading, PassageSync
from neardup.records import Dead, Fingerprint, Fingerprinted, Skip, Story

from tests.support.builders import commit, fingerprinted

STORIES = 24
FAILING = Dead.STORE_ERROR
ANSWERS = st.sampled_from(["read", "read", "read", "changed", Skip.MISSING, FAILING, Dead.QUARANTINED])
SIZES = st.lists(st.integers(1, 8), max_size=4).filter(lambda sizes: sum(sizes) <= STORIES)


def text(number: int) -> Fingerprint:
    """A text that has two passage hashes in common with the one before it, and two with the one after it."""
    hashes = np.array([10 * number, 10 * number + 1, 10 * number + 10, 10 * number + 11], np.uint32)
    return replace(fingerprinted(number, number).fingerprint, passages=hashes.tobytes())


def story(number: int) -> Fingerprinted:
    """A story, committed as the ledger's number `number`."""
    return replace(fingerprinted(number, number), fingerprint=text(number))


class Pages:
    """Answers reads as planned, by story id; `asked` counts the reads of each."""

    def __init__(self, answers: dict[int, str]) -> None:
        self.answers = answers
        self.asked: Counter[int] = Counter()

    async def read(self, story: Story, etag: str | None) -> PageResult:
        assert etag is None
        self.asked[story.id] += 1
        await asyncio.sleep(0)
        answer = self.answers.get(story.id, "read")
        if isinstance(answer, Skip):
            return Unreadable(answer)
        if isinstance(answer, Dead):
            return ReadFailed(answer, "it failed")
        return PageFingerprinted(text(story.id if answer == "read" else story.id + 2 * STORIES), None, 1)


@contextmanager
def opened() -> Iterator[tuple[Ledger, PassageIndex]]:
    with (
        TemporaryDirectory() as folder,
        closing(Ledger(Path(folder) / "l.db")) as ledger,
        closing(PassageIndex(Path(folder) / "passages", "ledger", "1")) as index,
    ):
        yield ledger, index


async def fill(ledger: Ledger, index: PassageIndex, sizes: list[int]) -> list[tuple[int, int]]:
    """Commit all stories; the first ones are in segments of these sizes.  Returns the ranges of the segments."""
    first, ranges = 1, []
    for size in sizes:
        await ledger.do(commit, *map(story, range(first, first + size)))
        sync = PassageSync(index, ledger)
        await sync.catch_up()
        await sync._flush()
        ranges.append((first, first + size - 1))
        first += size
    await ledger.do(commit, *map(story, range(first, STORIES + 1)))
    return ranges


def found(index: PassageIndex) -> dict[int, list[int]]:
    """For each story the stories that share passages with it, itself included."""
    probes = [np.frombuffer(text(number).passages, np.uint32) for number in range(1, STORIES + 1)]
    return {number: result.numbers.tolist() for number, result in enumerate(index.look_up(probes, STORIES), start=1)}


def neighbours(held: set[int]) -> dict[int, list[int]]:
    return {
        number: [other for other in range(number - 1, number + 2) if other in held] for number in range(1, STORIES + 1)
    }


@given(sizes=SIZES, lost=st.sets(st.integers(0, 3)), answers=st.dictionaries(st.integers(1, STORIES), ANSWERS))
def test_what_is_missing_is_read_again_and_nothing_else(
    sizes: list[int], lost: set[int], answers: dict[int, str]
) -> None:
    async def scenario() -> None:
        with opened() as (ledger, index):
            ranges = await fill(ledger, index, sizes)
            files = sorted(index.list_files(), key=lambda path: path.name.split("-")[1])
            gone = [n for n in range(len(ranges)) if n in lost]
            for n in gone:
                files[n].unlink()
            missing = {number for n in gone for number in range(ranges[n][0], ranges[n][1] + 1)}
            assert await ledger.do(passages.count_missing, index.held) == len(missing)
            pages = Pages(answers)
            reading = PassageReading(PassageSync(index, ledger), ledger, read_singly(pages.read))
            assert await reading.run(asyncio.Event())
            assert pages.asked == Counter(missing)
            results = Counter(str(answers.get(number, "read")) for number in missing)
            assert reading.counts == results
            unread = {number for number in missing if answers.get(number, "read") != "read"}
            assert found(index) == neighbours(set(range(1, STORIES + 1)) - unread)
            assert await ledger.do(passages.count_missing, index.held) == results[FAILING]
            again = Pages({})
            assert await PassageReading(PassageSync(index, ledger), ledger, read_singly(again.read)).run(
                asyncio.Event()
            )
            assert again.asked == Counter(number for number in missing if answers.get(number) == FAILING)
            assert await ledger.do(passages.count_missing, index.held) == 0

    asyncio.run(scenario())


@given(sizes=SIZES, stops=st.lists(st.integers(0, STORIES), max_size=3))
def test_a_reading_that_is_stopped_is_resumed(sizes: list[int], stops: list[int]) -> None:
    async def scenario() -> None:
        with opened() as (ledger, index):
            await fill(ledger, index, sizes)
            for path in index.list_files():
                path.unlink()
            pages = Pages({})
            for after in [*stops, None]:
                stop, before = asyncio.Event(), pages.asked.total()

                def advance(done: int, stop: asyncio.Event = stop, after: int | None = after) -> None:
                    if after is not None and done >= after:
                        stop.set()

                if after == 0:
                    stop.set()
                ended = await PassageReading(PassageSync(index, ledger), ledger, read_singly(pages.read)).run(
                    stop, advance
                )
                assert ended == (not stop.is_set())
                assert after != 0 or pages.asked.total() == before
            assert pages.asked == Counter(range(1, sum(sizes) + 1)), "a page that was read was read once more"
            assert found(index) == neighbours(set(range(1, STORIES + 1)))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passage_sync, "STORIES_AT_A_TIME", 3)
        patch.setattr(passage_sync, "FLUSH_STORIES", 6)
        asyncio.run(scenario())
