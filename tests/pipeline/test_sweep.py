"""Law: a sweep nominates the pairs that lookups nominate, in any order of the stories, and after interruptions."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.config import Detection
from neardup.core.columns import Outcomes
from neardup.errors import Fatal
from neardup.index.passages import join
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.join import JoinStep
from neardup.ledger import Ledger, candidates, connect, languages, outbox, passages, stories
from neardup.ledger.candidates import Matches
from neardup.ledger.files import make_scratch_folder
from neardup.nomination.passages import PassageNomination
from neardup.pipeline import sweep
from neardup.pipeline.passage_sync import PassageSync, open_passages
from neardup.pipeline.sweep import PassageSweep, load_fingerprints
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import Fingerprinted, Language, Story

from tests.support.builders import fingerprint_of
from tests.support.languages import BENGALI, HINDI
from tests.support.sampling import count_examples

EVERYTHING = 10**6
Made = tuple[Language, set[int]]
Pairs = set[tuple[int, int]]
corpora = st.lists(
    st.tuples(st.sampled_from([HINDI, BENGALI]), st.sets(st.integers(0, 15), max_size=8)), min_size=1, max_size=12
)


def fingerprinted(story_id: int, made: Made) -> Fingerprinted:
    language, hashes = made
    passages = np.array(sorted(hashes), "<u4").tobytes()
    return Fingerprinted(
        Story(story_id, language), replace(fingerprint_of(story_id.to_bytes(16, "little")), passages=passages), None
    )


async def pending(ledger: Ledger) -> Pairs:
    return {(pair.a.id, pair.b.id) for pair in await ledger.do(candidates.list_pending, BEFORE_ALL, EVERYTHING)}


async def looked_up(folder: Path, corpus: Sequence[tuple[int, Made]], detection: Detection) -> Pairs:
    """The candidates of stories that are looked up and committed one by one."""
    with closing(Ledger(folder / "looked-up.db")) as ledger, closing(await open_passages(ledger)) as index:
        sync = PassageSync(index, ledger)
        await looked_up_one_by_one(ledger, sync, PassageNomination(sync, ledger, detection), corpus, detection)
        return await pending(ledger)


async def looked_up_one_by_one(
    ledger: Ledger,
    sync: PassageSync,
    nomination: PassageNomination,
    corpus: Sequence[tuple[int, Made]],
    detection: Detection,
) -> None:
    for story_id, made in corpus:
        batch = Outcomes.of([fingerprinted(story_id, made)])
        lookup = await nomination.look_up(batch)
        matches, common = await nomination.nominate(lookup)
        found = matches[story_id]
        nominated = [Matches(story_id, (), detection.of(made[0]).max_matches, found.ids, found.capped)]
        await ledger.do(stories.commit, stories.Batch(batch, nominated, 1, {}, None, common.found))
        await sync.catch_up()
        nomination.note_commit(lookup.probes)


async def committed(ledger: Ledger, corpus: Sequence[tuple[int, Made]]) -> None:
    batch = [fingerprinted(story_id, made) for story_id, made in corpus]
    await ledger.do(stories.commit, stories.Batch(Outcomes.of(batch), (), 1, {}, None))


def changed_meanwhile(change: Callable[[], None]) -> AbstractContextManager[object]:
    """Whenever the index was read, another process changes the ledger."""
    read_index = PassageIndex.join

    def join_and_change(self: PassageIndex, *arguments: Any) -> Iterator[JoinStep]:
        for step in read_index(self, *arguments):
            if step.is_read or len(step.common.hashes):
                change()
            yield step

    return patch.object(PassageIndex, "join", join_and_change)


async def swept(ledger: Ledger, detection: Detection, after: int = 0, parts: int = EVERYTHING) -> tuple[int, bool]:
    """Sweep until so many parts of the pairs are on record.

    Returns the number of the story to continue after, and whether no pairs are left.
    """
    stop = asyncio.Event()
    with closing(await open_passages(ledger)) as index, make_scratch_folder(ledger.path, "sweep") as scratch:
        sync = PassageSync(index, ledger)
        await sync.catch_up()
        sweep = PassageSweep(sync, ledger, detection, scratch, stop=stop, show=lambda done: None)
        assert await sweep.find_common(after)
        async for page in sweep.nominate():
            parts -= page.through > after
            after = page.through
            if not parts:
                stop.set()
    return after, not stop.is_set()


@settings(deadline=None, max_examples=count_examples(25))
@given(corpora, st.randoms(use_true_random=False))
def test_a_sweep_nominates_what_lookups_nominate(corpus: list[Made], random: Random) -> None:
    numbered = list(enumerate(corpus))
    shuffled = numbered.copy()
    random.shuffle(shuffled)

    async def play(folder: Path) -> None:
        detection = Detection()
        with closing(Ledger(folder / "swept.db")) as ledger:
            await committed(ledger, shuffled)
            await swept(ledger, detection)
            assert await pending(ledger) == await looked_up(folder, numbered, detection)

    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))


@settings(deadline=None, max_examples=count_examples(25))
@given(corpora, st.integers(1, 4), st.integers(1, 30))
def test_an_interrupted_sweep_continues(corpus: list[Made], parts: int, listed: int) -> None:
    async def play(folder: Path) -> None:
        detection, after, ended = Detection(), 0, False
        with closing(Ledger(folder / "whole.db")) as whole, closing(Ledger(folder / "interrupted.db")) as interrupted:
            for ledger in (whole, interrupted):
                await committed(ledger, list(enumerate(corpus)))
            await swept(whole, detection)
            while not ended:
                after, ended = await swept(interrupted, detection, after, parts)
            assert await pending(interrupted) == await pending(whole)

    with (
        TemporaryDirectory() as folder,
        patch.multiple(join, MAX_LISTED=listed, MAX_COUNTED=1),
        patch.object(sweep, "STEP_SECONDS", 0),
    ):
        asyncio.run(play(Path(folder)))


@settings(deadline=None, max_examples=count_examples(25))
@given(corpora, st.sets(st.integers(0, 11)), st.sets(st.integers(0, 12)))
def test_stories_that_come_and_go_during_a_sweep_change_no_other_pairs(
    corpus: list[Made], removed: set[int], added: set[int]
) -> None:
    numbered = [(2 * n + 1, made) for n, made in enumerate(corpus)]
    gone, new = {2 * n + 1 for n in removed}, [(2 * n, (HINDI, {0, 1, 2})) for n in sorted(added)]

    async def play(folder: Path) -> None:
        with closing(Ledger(folder / "whole.db")) as whole, closing(Ledger(folder / "changed.db")) as changed:

            def change() -> None:
                with closing(connect(changed.path)) as db:
                    for story_id in gone:
                        stories.forget(db, story_id)
                    batch = Outcomes.of([fingerprinted(story_id, made) for story_id, made in new])
                    stories.commit(db, stories.Batch(batch, (), 1, {}, None))

            for ledger in (whole, changed):
                await committed(ledger, numbered)
            await swept(whole, Detection())
            with changed_meanwhile(change):
                await swept(changed, Detection())
            assert await pending(changed) == {pair for pair in await pending(whole) if gone.isdisjoint(pair)}

    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))


@settings(deadline=None, max_examples=count_examples(25))
@given(corpora, st.sets(st.integers(0, 11)), st.sets(st.integers(0, 12)))
def test_a_sweep_takes_the_stories_that_were_there_when_it_began_and_still_are(
    corpus: list[Made], removed: set[int], edited: set[int]
) -> None:
    want = {
        language: [n for n, (spoken, _) in enumerate(corpus) if spoken == language] for language in (HINDI, BENGALI)
    }

    async def play(folder: Path) -> None:
        with closing(Ledger(folder / "l.db")) as ledger:
            await committed(ledger, list(enumerate(corpus)))
            last_change = await ledger.do(outbox.read_last_seq)
            sizes = {Language(name): n for name, n in (await ledger.do(languages.count_by_language)).items()}
            for story_id in removed:
                await ledger.do(stories.forget, story_id)
            await committed(ledger, [(n, (HINDI, {n})) for n in edited - removed])
            found = await load_fingerprints(ledger, sizes, last_change, asyncio.Event())
        for language, loaded in found.items():
            assert loaded.ids.tolist() == [n for n in want[language] if n not in removed | edited]

    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))


async def test_a_common_passage_is_recorded_though_its_example_is_removed_meanwhile(tmp_path: Path) -> None:
    with closing(Ledger(tmp_path / "l.db")) as ledger:
        await committed(ledger, [(n, (HINDI, {1})) for n in range(6)])

        def remove_all_but_one() -> None:
            with closing(connect(ledger.path)) as db:
                for story_id in range(5):
                    stories.forget(db, story_id)

        with changed_meanwhile(remove_all_but_one):
            await swept(ledger, Detection(common_passage=5))
        [listed] = await ledger.do(passages.list_common, 9)
        assert (listed["language"], listed["hash"], listed["holders"]) == ("HINDI", 1, 6)
        [due] = await ledger.do(passages.list_due_for_counting, await ledger.do(passages.count_gone), 9)
        assert due == 1, "it is counted again, because those who went were counted"


async def test_the_best_matches_of_a_story_are_nominated_and_the_others_counted(tmp_path: Path) -> None:
    corpus: list[tuple[int, Made]] = [(n, (HINDI, {*range(10 * n, 10 * n + 2 + n)})) for n in range(1, 5)]
    corpus.append((9, (HINDI, set(range(50)))))
    with (
        closing(Ledger(tmp_path / "l.db")) as ledger,
        closing(await open_passages(ledger)) as index,
        make_scratch_folder(ledger.path, "sweep") as scratch,
    ):
        await committed(ledger, corpus)
        sync = PassageSync(index, ledger)
        await sync.catch_up()
        sweep = PassageSweep(
            sync, ledger, Detection(max_matches=2), scratch, stop=asyncio.Event(), show=lambda done: None
        )
        assert await sweep.find_common(0)
        pages = [page async for page in sweep.nominate()]
        assert await pending(ledger) == {(3, 9), (4, 9)}
        assert sum(page.candidates for page in pages) == 2
        assert [dict(page.left_out) for page in pages if page.left_out] == [{HINDI: 2}]


async def test_common_passages_nominate_no_story_and_are_recorded_with_an_example(tmp_path: Path) -> None:
    corpus: list[tuple[int, Made]] = [(n, (HINDI, {1, 2, 3, 100 + n // 2, 200 + n // 2})) for n in range(6)]
    with closing(Ledger(tmp_path / "l.db")) as ledger:
        await committed(ledger, corpus)
        await swept(ledger, Detection(common_passage=5))
        assert await pending(ledger) == {(0, 1), (2, 3), (4, 5)}
        listed = [tuple(row.values())[:4] for row in await ledger.do(passages.list_common, 9)]
        assert listed == [("HINDI", passage, 6, 0) for passage in (1, 2, 3)]


async def test_a_passage_that_becomes_common_has_the_matches_of_its_holders_selected_again(tmp_path: Path) -> None:
    prayer, passage = {1, 2, 3}, {10, 11}
    corpus: list[tuple[int, Made]] = [
        (1, (HINDI, passage)),
        (2, (HINDI, prayer)),
        (3, (HINDI, prayer | passage)),
        (4, (HINDI, prayer)),
        (5, (HINDI, prayer)),
    ]
    detection = Detection(max_matches=1, common_passage=3)
    with closing(Ledger(tmp_path / "l.db")) as ledger, closing(await open_passages(ledger)) as index:
        sync = PassageSync(index, ledger)
        nomination = PassageNomination(sync, ledger, detection)
        await looked_up_one_by_one(ledger, sync, nomination, corpus, detection)
        assert (1, 3) not in await pending(ledger)
        assert 3 in {story.side.id for story in await ledger.do(candidates.list_due_for_selection, 0, 9)}


async def test_a_full_disk_is_one_error(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "groups").symlink_to("/dev/full")
    with closing(Ledger(tmp_path / "l.db")) as ledger, closing(await open_passages(ledger)) as index:
        await committed(ledger, [(n, (HINDI, {1, 2})) for n in range(3)])
        sync = PassageSync(index, ledger)
        await sync.catch_up()
        sweep = PassageSweep(sync, ledger, Detection(), scratch, stop=asyncio.Event(), show=lambda done: None)
        with pytest.raises(Fatal, match=f"cannot write scratch files in {tmp_path}: No space left on device"):
            await sweep.find_common(0)


def test_scratch_files_of_a_killed_sweep_are_removed(tmp_path: Path) -> None:
    for name in ("l.db-sweep-1", "other.db-sweep-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "groups").write_bytes(b"x")
    with make_scratch_folder(tmp_path / "l.db", "sweep") as scratch:
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted([scratch.name, "other.db-sweep-1"])
    assert [path.name for path in tmp_path.iterdir()] == ["other.db-sweep-1"]
