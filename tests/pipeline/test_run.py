"""A run's listing of works, and when a run proposes --fresh."""

import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.columns import ListedBlock, StoryColumns
from neardup.errors import Fatal
from neardup.ledger import Ledger, works
from neardup.pipeline.progress import Progress
from neardup.pipeline.run import EMPTY_LISTING, FRESH_PAYS, FreshProposal, Options, WorksListing
from neardup.pipeline.summary import Counts
from neardup.records import BadRow, Checkpoint, Dead, Fingerprinted, ListedRow, Story
from neardup.source import list_rows
from structlog.testing import capture_logs

from tests.support.builders import commit, fingerprint_of
from tests.support.languages import HINDI
from tests.support.sampling import count_examples

BAD_ROW = BadRow("row:1", Dead.BAD_ROW, "no catalogue")
ids = st.sets(st.integers(-9, -1))


class Rows:
    """A source of these rows."""

    name, size = "rows", 0

    def __init__(self, rows: Iterable[ListedRow]) -> None:
        self._rows = rows

    async def list_blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        for row in self._rows:
            yield row if isinstance(row, BadRow) else StoryColumns.of([row])


def work(story_id: int) -> Story:
    return Story(story_id, HINDI, catalogue="classics")


async def after_listing(held: set[int], rows: list[ListedRow], stop_after: int | None = None) -> set[int]:
    """The works on record after a listing of these rows, of which all are read, or only the first."""
    with tempfile.TemporaryDirectory() as folder, closing(Ledger(Path(folder) / "l.db")) as ledger:
        made = [Fingerprinted(work(n), fingerprint_of(abs(n).to_bytes(16)), None) for n in held]
        await ledger.do(lambda db: commit(db, *made))
        listing = WorksListing(Rows(rows), ledger)
        read = 0
        async with aclosing(list_rows(listing)) as listed:  # type: ignore[type-var]
            async for row in listed:
                assert row == rows[read]
                read += 1
                if read == stop_after:
                    break
        left = set(await ledger.do(works.list_ids, "classics"))
        assert listing.removed == len(held - left)
        assert await ledger.do(lambda db: {n for (n,) in db.execute("SELECT id FROM stories")}) == left
    return left


few = settings(max_examples=count_examples(20))  # each makes a ledger


@given(ids, ids.filter(bool))
@few
async def test_works_that_are_not_listed_are_removed(held: set[int], listed: set[int]) -> None:
    assert await after_listing(held, [work(n) for n in listed]) == held & listed


@given(ids, ids, st.integers(0, 3))
@few
async def test_nothing_is_removed_beside_a_row_that_describes_no_work(
    held: set[int], listed: set[int], place: int
) -> None:
    rows: list[ListedRow] = [work(n) for n in listed]
    rows.insert(place, BAD_ROW)
    assert await after_listing(held, rows) == held


@given(ids, ids.filter(bool))
@few
async def test_a_listing_that_is_stopped_removes_nothing(held: set[int], listed: set[int]) -> None:
    assert await after_listing(held, [work(n) for n in listed], stop_after=1) == held


async def test_an_empty_listing_fails_and_removes_nothing(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "l.db")) as ledger:
        await ledger.do(lambda db: commit(db, Fingerprinted(work(-1), fingerprint_of(bytes(16)), None)))
        with pytest.raises(Fatal) as refused:
            _ = [row async for row in list_rows(WorksListing(Rows([]), ledger))]
        assert str(refused.value) == EMPTY_LISTING
        assert await ledger.do(works.list_ids, "classics") == [-1]


def proposed(options: Options, stories: int, held: int = 0) -> list[int]:
    """The sizes for which `--fresh` is proposed while a listing of so many stories is read."""
    proposal = FreshProposal(options)
    with capture_logs() as lines:
        for listed in (0, stories // 10, stories):
            progress = Progress(Counts(fingerprinted=listed), position=40 * listed, size=40 * stories)
            proposal.consider(progress, held)
    return [line["about"] for line in lines]


def test_a_large_first_backfill_is_proposed_fresh_once() -> None:
    assert proposed(Options("backfill"), FRESH_PAYS) == [FRESH_PAYS]


@pytest.mark.parametrize(
    ("options", "stories", "held"),
    [
        (Options("backfill"), FRESH_PAYS - 10, 0),
        (Options("backfill"), FRESH_PAYS, 1),
        (Options("backfill", fresh=True), FRESH_PAYS, 0),
        (Options("daily"), FRESH_PAYS, 0),
        (Options("retry", dead_letters=True), FRESH_PAYS, 0),
    ],
)
def test_no_other_run_is_proposed_fresh(options: Options, stories: int, held: int) -> None:
    assert proposed(options, stories, held) == []
