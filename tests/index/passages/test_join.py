"""Laws of merge and join: they lose nothing and drop the dead, and the join finds what brute force finds.

Postings that are regrouped by story are those that were inserted.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.candidates.banding import Numbers
from neardup.core.candidates.passage_groups import DEAD, LanguageOf
from neardup.index.passages import join
from neardup.index.passages.folder import FAN_IN, IsLive, choose_segments_to_merge
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.join import JoinStep
from neardup.index.passages.postings import PassageHashes

from tests.index.passages.brute_force import answers, as_dicts, holders, pairs, stories_from, without
from tests.support.sampling import count_examples

LEDGER, ALGORITHM = "ledger", "1"
MADE_AT = 100  # the ledger's last change


def live_except(dead: Collection[int]) -> IsLive:
    def is_live(numbers: Numbers) -> npt.NDArray[np.bool_]:
        return ~np.isin(numbers, np.array(sorted(dead), np.uint32))

    return is_live


def joined(steps: Iterable[JoinStep]) -> tuple[dict[tuple[int, int], int], dict[int, int]]:
    """The pairs with what they share, each once, and the holders of the common hashes."""
    shared: dict[tuple[int, int], int] = {}
    common: dict[int, int] = {}
    last = JoinStep()
    for step in steps:
        left, right = step.pairs.left.tolist(), step.pairs.right.tolist()
        assert all(last.through < number <= step.through for number in right), "a story's pairs are in two steps"
        assert step.done >= last.done and step.through >= last.through
        shared.update(zip(zip(left, right, strict=True), step.pairs.shared.tolist(), strict=True))
        common.update(zip(step.common.hashes.tolist(), step.common.holders.tolist(), strict=True))
        last = step
    assert last.done == 1.0
    return shared, common


def language_of(stories: Iterable[int], dead: Collection[int] = ()) -> LanguageOf:
    """One language for each number of a story that is not dead."""
    languages = np.full(max([0, *stories]) + 1, DEAD, np.uint8)
    languages[[number for number in stories if number not in dead]] = 0
    return languages


def different(stories: Iterable[int]) -> Numbers:
    """A copy key for each number: no story is a copy of another."""
    return np.arange(max([0, *stories]) + 1, dtype=np.uint32)


@settings(max_examples=count_examples(60))  # a flush syncs
@given(stories_from(1, max_size=15), st.data(), st.integers(1, 4), st.sets(st.integers(1, 60)))
def test_merge_and_join_find_what_brute_force_finds(
    stories: dict[int, PassageHashes], data: st.DataObject, common: int, dead: set[int]
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name, "passages")
        index, first = PassageIndex(folder, LEDGER, ALGORITHM), 1
        for number, hashes in stories.items():
            index.insert([(number, hashes)])
            match data.draw(st.sampled_from(["nothing", "flush", "merge"])):
                case "flush":
                    index.flush(first, number, MADE_AT)
                    first = number + 1
                case "merge":
                    index.merge(live_except([]), MADE_AT)
        live = without(stories, dead)
        commons = {holder: len(numbers) for holder, numbers in holders(live).items() if len(numbers) > common}
        languages = language_of(stories, dead)
        places = np.arange(len(languages), dtype=np.uint32)
        assert joined(index.join(places, languages, different(stories), common, Path(name))) == (
            pairs(live, common),
            commons,
        )
        assert [path.name for path in Path(name).iterdir()] == ["passages"], "the scratch file is left behind"

        index.flush(first, first + 100, MADE_AT)
        while index.merge(live_except(dead), MADE_AT):
            pass
        found = index.look_up(list(stories.values()), common)
        held = without(stories, dead) if len(index.list_files()) == 1 and first > 1 else None
        if held is not None:
            assert list(map(as_dicts, found)) == answers(held, list(stories.values()), common)
            assert index.postings == sum(map(len, held.values()))
            assert index.stories == sum(len(hashes) > 0 for hashes in held.values())
        assert index.held == [(1, first + 100)]
        index.close()


@given(stories_from(1), st.integers(2, 8), st.data())
def test_the_join_pairs_stories_of_all_languages(
    stories: dict[int, PassageHashes], common: int, data: st.DataObject
) -> None:
    languages = language_of(stories)
    for number in stories:
        languages[number] = data.draw(st.sampled_from([0, 1, 2]))
    after = data.draw(st.integers(0, len(languages) - 1))
    with (
        TemporaryDirectory() as name,
        patch.multiple(join, MAX_LISTED=data.draw(st.integers(1, 60)), MAX_COUNTED=data.draw(st.integers(1, 20))),
    ):
        index = PassageIndex(Path(name, "passages"), LEDGER, ALGORITHM)
        index.insert(list(stories.items()))
        places = np.arange(len(languages), dtype=np.uint32)
        steps = list(index.join(places, languages, different(stories), common, Path(name), after))
        index.close()
    later = {pair: shared for pair, shared in pairs(stories, common).items() if pair[1] > after}
    commons = {holder: numbers for holder, numbers in holders(stories).items() if len(numbers) > common}
    assert joined(steps) == (later, {passage_hash: len(numbers) for passage_hash, numbers in commons.items()})
    reported = [
        (passage_hash, languages[example])
        for step in steps
        for passage_hash, example in zip(step.common.hashes.tolist(), step.common.examples.tolist(), strict=True)
        if example in commons[passage_hash]
    ]
    expected = {(passage_hash, languages[number]) for passage_hash, numbers in commons.items() for number in numbers}
    assert sorted(reported) == sorted(expected), "a common passage_hash has no example, or two, in a language"
    read = [step.is_read for step in steps]
    assert read.count(True) == 1
    assert not any(len(step.common.hashes) for step in steps[read.index(True) :])


def test_most_postings_are_in_one_segment_and_few_segments_remain(tmp_path: Path) -> None:
    index = PassageIndex(tmp_path, LEDGER, ALGORITHM)
    for number in range(1, 40):
        index.flush(number, number, MADE_AT)
        while index.merge(live_except([]), MADE_AT):
            pass
        assert index.held == [(1, number)] and len(index.list_files()) <= 2 * FAN_IN
    index.close()


def test_segments_with_a_gap_between_them_are_not_merged(tmp_path: Path) -> None:
    index = PassageIndex(tmp_path, LEDGER, ALGORITHM)
    index.flush(1, 1, MADE_AT)
    index.flush(3, 3, MADE_AT)
    assert not index.merge(live_except([]), MADE_AT) and index.held == [(1, 1), (3, 3)]
    index.flush(2, 2, MADE_AT)
    assert index.merge(live_except([]), MADE_AT) and index.held == [(1, 3)]
    assert not choose_segments_to_merge([])
    index.close()


hashes = st.sets(st.integers(0, 2**32 - 1) | st.integers(0, 9), max_size=6)


@given(stories=st.dictionaries(st.integers(1, 60), hashes, max_size=20), flushed=st.integers(0, 60))
@settings(max_examples=count_examples(40))
def test_each_story_has_its_hashes_again(stories: dict[int, set[int]], flushed: int) -> None:
    """Some are in a segment, the others in memory."""
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "RANGE", 16)
        folder, scratch = Path(name) / "passages", Path(name) / "scratch"
        scratch.mkdir()
        index = PassageIndex(folder, "ledger-1", "algorithm-1")
        rows = [(number, np.array(sorted(its), np.uint32)) for number, its in sorted(stories.items())]
        index.insert(rows)
        if flushed:
            index.flush(1, flushed, flushed)
        found, wanted = dict[int, list[int]](), {number: sorted(its) for number, its in stories.items() if its}
        for passage_hash in index.regroup_by_story(scratch):
            numbers = np.arange(passage_hash.first, passage_hash.last + 1, dtype=np.uint32)
            starts, its = passage_hash.of(numbers)
            found |= {
                int(number): its[start:stop].tolist()
                for number, start, stop in zip(numbers, starts, starts[1:], strict=False)
                if stop > start
            }
        assert found == wanted
        assert list(scratch.iterdir()) == [], "a scratch file is left"
        index.close()
