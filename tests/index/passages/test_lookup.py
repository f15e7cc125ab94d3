"""Laws of lookups: however the stories are split into segments and tail, the answer is that of brute force.

Keys in memory are found however unevenly hashes are spread, and no filter hides a hash.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.candidates.banding import Numbers
from neardup.errors import Fatal
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.postings import PassageHashes, Run, find_keys, make_filter, may_hold, put_in_filter

from tests.index.passages.brute_force import answers, as_dicts, hash_sets, stories_from
from tests.support.sampling import EXAMPLES, count_examples

LEDGER, ALGORITHM = "ledger", "1"
EVERY = 1_000  # no hash is common
MADE_AT = 100  # the ledger's last change
LAST = 2**32 - 1
hashes = st.integers(0, 4) | st.integers(LAST - 4, LAST) | st.integers(0, LAST) | st.integers(2**31, 2**31 + 99)


@settings(max_examples=count_examples(60))  # a flush syncs
@given(stories_from(1, max_size=15), st.data(), st.lists(hash_sets, max_size=4), st.integers(0, 4))
def test_a_lookup_finds_what_brute_force_finds(
    stories: dict[int, PassageHashes], data: st.DataObject, probes: list[PassageHashes], common: int
) -> None:
    with TemporaryDirectory() as folder:
        index, first, written = PassageIndex(Path(folder), LEDGER, ALGORITHM), 1, 0
        for row in stories.items():
            index.insert([row])
            if data.draw(st.sampled_from(["nothing", "insert again", "flush"])) == "flush":
                index.flush(first, row[0], MADE_AT)
                first, written = row[0] + 1, written + 1
        probes = [*probes, *stories.values()]
        found = index.look_up(probes, common)
        assert list(map(as_dicts, found)) == answers(stories, probes, common)
        assert index.held == ([(1, first - 1)] if written else [])
        assert {number: set(hashes.tolist()) for number, hashes in index.read_hashes(list(stories)).items()} == {
            number: set(hashes.tolist()) for number, hashes in stories.items()
        }
        after = data.draw(st.integers(0, max(stories, default=0)))
        latest = {number: hashes for number, hashes in stories.items() if number > after}
        for result, expected in zip(index.look_up(probes, EVERY, after), answers(latest, probes, EVERY), strict=True):
            held = as_dicts(result)[0]
            assert {number: held[number] for number in held if number > after} == expected[0]

        index.close()
        reopened = PassageIndex(Path(folder), LEDGER, ALGORITHM)
        reopened.insert(list(stories.items()))  # those that it holds are left out
        found = reopened.look_up(probes, common)
        assert list(map(as_dicts, found)) == answers(stories, probes, common)
        reopened.close()


@pytest.mark.parametrize("postings", [3, 300_000])
def test_a_hash_in_one_large_bucket_is_found(tmp_path: Path, postings: int) -> None:
    index = PassageIndex(tmp_path, LEDGER, ALGORITHM)
    low = np.arange(0, 2 * postings, 2, dtype=np.uint32)[: 1 << 15]  # one bucket has them all
    rows = [(number, low) for number in range(1, 1 + max(1, postings // len(low)))]
    index.insert(rows)
    index.flush(1, len(rows), MADE_AT)
    found = index.look_up([low, low + 1, np.array([0, 2**32 - 1], np.uint32)], len(rows))
    assert found[0].shared.tolist() == [len(low)] * len(rows)
    assert [len(result.numbers) for result in found[1:]] == [0, 0]
    common = index.look_up([low], len(rows) - 1)[0]
    assert common.holders.tolist() == [len(rows)] * len(low) and not len(common.numbers)
    index.close()


def test_another_process_sees_what_is_flushed(tmp_path: Path) -> None:
    writer, reader = (PassageIndex(tmp_path, LEDGER, ALGORITHM) for _ in range(2))
    probe = np.array([1, 2], np.uint32)
    reader.insert([(1, probe)])  # from the ledger's outbox
    writer.insert([(1, probe), (2, probe)])
    writer.flush(1, 2, MADE_AT)
    numbers: Numbers = reader.look_up([probe], 50)[0].numbers
    assert numbers.tolist() == [1, 2] and reader.held == [(1, 2)]
    writer.close()
    reader.close()


@pytest.mark.parametrize(("ledger", "algorithm"), [("other", ALGORITHM), (LEDGER, "2")])
def test_an_index_of_another_ledger_or_algorithm_is_refused(tmp_path: Path, ledger: str, algorithm: str) -> None:
    index = PassageIndex(tmp_path, LEDGER, ALGORITHM)
    index.flush(1, 5, MADE_AT)
    with pytest.raises(Fatal, match="is of"):
        PassageIndex(tmp_path, ledger, algorithm)
    with pytest.raises(ValueError, match="a part"):
        index.flush(5, 6, MADE_AT)
    index.flush(2, 5, MADE_AT)
    assert index.held == [(1, 5)] and (index.stories, index.postings) == (0, 0)
    index.close()


@given(st.lists(st.tuples(hashes, st.integers(1, LAST)), max_size=60), st.lists(hashes, max_size=30))
def test_a_run_finds_the_keys_of_each_hash(postings: list[tuple[int, int]], wanted: list[int]) -> None:
    held = sorted(set(postings))
    run = Run(np.array([hash_ << 32 | number for hash_, number in held], np.uint64))
    places, counts = run.find(np.array(wanted, np.uint32))
    assert places.tolist() == [sum(other < passage for other, _ in held) for passage in wanted]
    assert counts.tolist() == [sum(other == passage for other, _ in held) for passage in wanted]
    expected = [number for passage in wanted for other, number in held if other == passage]
    assert run.numbers(places, counts).tolist() == expected


@given(st.lists(hashes, max_size=60), st.lists(hashes, max_size=60), st.lists(hashes, max_size=30))
def test_a_filter_may_hold_what_was_put_in_and_nothing_that_differs_much(
    first: list[int], second: list[int], others: list[int]
) -> None:
    filter_ = make_filter()
    for some in (first, second):
        put_in_filter(np.array(some, np.uint32), filter_)
    assert may_hold(filter_, np.array([*first, *second], np.uint32)).all()
    near = {passage >> 5 for passage in (*first, *second)}
    assert may_hold(filter_, np.array(others, np.uint32)).tolist() == [passage >> 5 in near for passage in others]


@pytest.mark.native
@settings(max_examples=EXAMPLES // 2, deadline=None)  # a filter has 16 MB
@given(st.lists(hashes, max_size=300), st.lists(hashes, max_size=60), st.sampled_from([0, 1, 5, 2**32 - 1]))
def test_the_native_core_searches_as_the_references_do(held: list[int], wanted: list[int], number: int) -> None:
    keys, sought = np.sort(np.array(held, np.uint64)) << np.uint64(32) | np.uint64(number), np.array(wanted, np.uint32)
    np.testing.assert_array_equal(find_keys(keys, sought), find_keys.reference(keys, sought))
    filter_, plain = make_filter(), make_filter()
    put_in_filter(np.array(held, np.uint32), filter_)
    put_in_filter.reference(np.array(held, np.uint32), plain)
    assert np.array_equal(filter_, plain), "another filter"
    np.testing.assert_array_equal(may_hold(filter_, sought), may_hold.reference(filter_, sought))
    with pytest.raises(ValueError, match="contradicts"):
        may_hold(filter_[1:], sought)
