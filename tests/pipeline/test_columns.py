"""Law: a run in columns leaves the ledger as if each row of its listing had been worked on and committed by itself.

Pages answer in any order and in parts, some with marks, failures or crashes; rows repeat stories, change them, or
describe none.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from contextlib import closing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.columns import Outcomes, PackedPages, StoryColumns
from neardup.core.languages import SHIPPED
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.ledger import outbox, runs, stories
from neardup.pages.results import Deliver, NotModified, PageResult, ReadFailed, make_results
from neardup.pipeline.stages import Pipeline
from neardup.pipeline.summary import Counts
from neardup.pipeline.worker import Jobs, Known, Worker, read_known
from neardup.records import RENDERINGS, BadRow, Dead, Fingerprint, ListedRow, Mark, MarkReason, Skip, Skipped, Story
from neardup.source import make_blocks

from tests.support.builders import fingerprinted, ledger_in_memory
from tests.support.languages import HINDI, TAMIL

BATCH, WORKERS, DEPTH = 5, 7, 6
SCRIPTS = (None, "DEVANAGARI", "TAMIL")
TABLES = {
    "stories": "SELECT id, language, simhash, signature, text_hash, updated_at, etag, words, shingles, published_at,"
    " author_id, path, title, page_title, name FROM stories ORDER BY id",
    "languages": "SELECT name, stories FROM languages ORDER BY name",
    "marks": "SELECT story_id, reason, detail, language, author_id, title, name FROM marks ORDER BY story_id, reason",
    "works": "SELECT * FROM works ORDER BY story_id",
    "dead letters": "SELECT key, reason, error, attempts FROM dead_letters ORDER BY key",
    "passages": "SELECT id, hashes FROM passage_hashes JOIN stories USING (number) ORDER BY id",
}
texts = st.none() | st.text(min_size=1, max_size=8)
fingerprints = st.builds(
    Fingerprint,
    text_hash=st.integers(0, 2).map(lambda n: n.to_bytes(16)),
    simhash=st.binary(min_size=16, max_size=16),
    signature=st.none() | st.binary(min_size=64, max_size=64),
    words=st.integers(1, 2**32 - 1),
    shingles=st.integers(0, 2**32 - 1),
    passages=st.binary(max_size=3).map(lambda some: some * 4),
)
shares = st.integers(0, 8).map(lambda n: n / 8)  # which add up exactly, in any order
marks = st.sampled_from([(), (), (Mark(MarkReason.HIDDEN, "63 %"),)])
fingerprinted_pages = st.builds(
    PageFingerprinted,
    fingerprints,
    etag=texts,
    size=st.integers(0, 2**32 - 1),
    title=texts,
    opening=texts,
    script=st.sampled_from(SCRIPTS),
    marks=marks,
    measures=st.none() | st.tuples(shares, shares, shares, shares),
    rendered=st.none() | st.sampled_from(RENDERINGS),
)
pages: st.SearchStrategy[PageResult] = st.one_of(
    fingerprinted_pages,
    fingerprinted_pages,
    fingerprinted_pages,
    st.just(NotModified()),
    st.builds(Unreadable, st.sampled_from([Skip.MISSING, Skip.EMPTY, Skip.TOO_SHORT]), marks),
    st.builds(ReadFailed, st.sampled_from([Dead.CRASHED, Dead.STORE_ERROR]), st.just("why")),
)
listed_stories = st.builds(
    Story,
    id=st.integers(0, 6),
    language=st.sampled_from([HINDI, TAMIL]),
    path=st.sampled_from([None, "a/b.html"]),
    author_id=st.sampled_from([None, "7", "x7"]),
    title=texts,
    published_at=st.none() | st.integers(0, 9),
    updated_at=st.none() | st.integers(0, 2),
)
bad_rows = st.integers(0, 2).map(lambda n: BadRow(f"row:{n}", Dead.BAD_ROW, "why"))
rows = st.one_of(*[st.tuples(listed_stories, pages)] * 5, st.tuples(bad_rows, st.none()))


@given(fingerprinted_pages)
def test_a_packed_page_is_unpacked_as_it_was(page: PageFingerprinted) -> None:
    assert PackedPages.of([page]).page(0) == page


@given(st.lists(fingerprinted_pages, max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_parts_of_packed_pages_are_those_of_their_lists(made: list[PageFingerprinted], at: int, end: int) -> None:
    packed = PackedPages.of(made)
    joined = PackedPages.concatenate([packed[at:end], packed.take(range(len(made)))])
    assert [joined.page(n) for n in range(len(joined))] == made[at:end] + made


def placed(row: ListedRow, position: int) -> ListedRow:
    return replace(row, position=position)


class Bed:
    """A ledger, and the pages of a listing: the answers are those of the row that is read, by its position."""

    def __init__(self, listing: Sequence[tuple[ListedRow, PageResult | None]], seed: int) -> None:
        self.db = ledger_in_memory()
        self.run = runs.begin(self.db, "daily")
        self.counts = Counts()
        self.worker = Worker(self.known, self.read, SHIPPED)
        self._answers = {row.position: page for row, page in listing}
        self._random = random.Random(seed)

    async def known(self, ids: Sequence[int]) -> dict[int, Known]:
        return read_known(self.db, ids)

    async def read(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
        left = list(stories.stories())
        self._random.shuffle(left)
        while left:
            some, left = left[:3], left[3:]
            await asyncio.sleep(0)
            answers = [(story, self._answers[story.position]) for story in some]
            await deliver(make_results([(story, page) for story, page in answers if page is not None]))

    async def write(self, outcomes: Outcomes) -> None:
        self.counts.add(outcomes)
        stories.commit(self.db, stories.Batch(outcomes, (), self.run, {}, None))

    def state(self) -> dict[str, Any]:
        tables = {name: self.db.execute(query).fetchall() for name, query in TABLES.items()}
        return tables | {
            "outbox": self.bands(),
            "counts": self.counts.as_dict(),
            "health": self.counts.health.compute_readings(),
        }

    def bands(self) -> dict[int, object]:
        """What an index holds that has applied the outbox."""
        held = dict[int, object]()
        for change in outbox.list_changes(self.db, 0, 10_000):
            held.pop(change.story_id, None)
            if change.new:
                held[change.story_id] = change.new
        return held


async def in_columns(bed: Bed, listing: Sequence[ListedRow]) -> None:
    async def every_row() -> AsyncGenerator[ListedRow, None]:
        for row in listing:
            yield row

    async def source() -> AsyncGenerator[Jobs, None]:
        async for block in make_blocks(every_row()):
            yield Jobs.of(block)

    async def look_up(_: Outcomes) -> None: ...

    async def write(batch: Outcomes, _: None, __: int) -> None:
        await bed.write(batch)

    pipeline: Pipeline[Jobs, Outcomes, None] = Pipeline(
        bed.worker.admit,
        bed.worker.work,
        Outcomes.concatenate,
        look_up,
        write,
        workers=WORKERS,
        depth=DEPTH,
        batch=BATCH,
        stop=asyncio.Event(),
        linger=0.0,
    )
    assert await pipeline.run(source())


async def one_by_one(bed: Bed, listing: Sequence[ListedRow]) -> None:
    for row in listing:
        await bed.write(Outcomes.of([await bed.worker.outcome(row)]))


@settings(deadline=None)
@given(st.lists(rows, max_size=30), st.integers())
async def test_a_run_in_columns_equals_its_rows_one_by_one(
    listed: list[tuple[ListedRow, PageResult | None]], seed: int
) -> None:
    listing = [(placed(row, n), page) for n, (row, page) in enumerate(listed)]
    states = []
    for way in (in_columns, one_by_one):
        bed = Bed(listing, seed)
        with closing(bed.db):
            await way(bed, [row for row, _ in listing])
            states.append(bed.state())
    assert states[0] == states[1]
    assert states[0]["counts"]["listed"] == len(listing), "a row has no outcome, or two"


ends = st.none() | st.integers(-9, 9)


@given(st.lists(st.booleans(), max_size=8), st.builds(slice, ends, ends))
def test_a_slice_of_outcomes_has_those_at_its_places(are_fingerprinted: list[bool], places: slice) -> None:
    outcomes = Outcomes.of(
        fingerprinted(n, n) if is_fingerprinted else Skipped(Story(n, HINDI), Skip.EMPTY)
        for n, is_fingerprinted in enumerate(are_fingerprinted)
    )
    assert outcomes[places].objects() == outcomes.objects()[places]
    assert outcomes[places].keys == outcomes.keys[places]
