"""Laws of damage and crashes: a damaged segment is named and never believed, and a crash leaves a readable index."""

import os
from collections.abc import Callable
from functools import cache
from itertools import count
from pathlib import Path
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neardup.core.candidates.banding import Numbers
from neardup.errors import Fatal, PassagesDamaged
from neardup.index.passages import segment
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.postings import PassageHashes
from neardup.index.passages.segment import (
    BLOCK,
    Header,
    block_checksums,
    choose_bits,
    estimate_bytes,
    read_header,
    write_header,
)

from tests.index.passages.brute_force import Answer, answers, as_dicts
from tests.support.sampling import count_examples

LEDGER, ALGORITHM, COMMON = "ledger", "1", 5
MADE_AT = 100  # the ledger's last change
RANDOM = np.random.default_rng(1)
STORIES: dict[int, PassageHashes] = {
    number: np.unique(RANDOM.integers(0, 1 << 32, 200, np.uint32) & np.uint32(0xFF0000FF)) for number in range(1, 41)
}


def all_live(numbers: Numbers) -> npt.NDArray[np.bool_]:
    return np.ones(len(numbers), np.bool_)


def opened(folder: Path) -> PassageIndex:
    return PassageIndex(folder, LEDGER, ALGORITHM)


def inserted(index: PassageIndex, first: int, last: int) -> None:
    index.insert([(number, STORIES[number]) for number in range(first, last + 1)])


def assert_finds_all(index: PassageIndex, last: int = 40) -> None:
    assert list(map(as_dicts, index.look_up(list(STORIES.values()), COMMON))) == expected(last)


@cache
def expected(last: int) -> list[Answer]:
    held = {number: hashes for number, hashes in STORIES.items() if number <= last}
    return answers(held, list(STORIES.values()), COMMON)


@pytest.fixture(scope="module")
def two_segments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("passages")
    index = opened(folder)
    for first, last in ((1, 20), (21, 40)):
        inserted(index, first, last)
        index.flush(first, last, MADE_AT)
    index.close()
    return folder


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=count_examples(40))
@given(data=st.data())
def test_damage_anywhere_is_found_named_and_healed(two_segments: Path, data: st.DataObject) -> None:
    path = max(two_segments.iterdir())
    content = path.read_bytes()
    place = data.draw(
        st.sampled_from([0, BLOCK, len(content) - BLOCK]).flatmap(lambda n: st.integers(n, n + BLOCK - 1))
    )
    if data.draw(st.booleans()):
        path.write_bytes(
            content[:place] + bytes([content[place] ^ 1 << data.draw(st.integers(0, 7))]) + content[place + 1 :]
        )
    else:
        path.write_bytes(content[:place])
    index = opened(two_segments)
    try:
        assert_finds_all(index)  # the damage is in a block that no lookup reads
    except PassagesDamaged as error:
        named = error.segment, error.first, error.last
    else:
        named = path.name, 21, 40
    assert named == (path.name, 21, 40)
    assert [damage[:3] for damage in index.check()] == [(path.name, 21, 40)]
    assert index.drop(path.name) == (21, 40) and index.held == [(1, 20)]
    assert_finds_all(index, last=20)
    inserted(index, 1, 40)
    index.flush(21, 40, MADE_AT)
    assert_finds_all(index)
    assert not list(index.check()) and index.held == [(1, 40)]
    index.close()


def test_a_segment_is_as_large_as_estimated(two_segments: Path) -> None:
    index = opened(two_segments)
    postings = [sum(len(STORIES[number]) for number in numbers) for numbers in (range(1, 21), range(21, 41))]
    sizes = [estimate_bytes(n, 20) for n in postings]
    assert index.measure_size() == sum(sizes)
    first, second = index.list_files()
    with patch.object(index, "list_files", lambda: [first, second.with_name("merged meanwhile")]):
        assert index.measure_size() == sizes[0]
    index.close()


def test_a_missing_segment_leaves_held(two_segments: Path) -> None:
    path = min(two_segments.iterdir())
    content, index = path.read_bytes(), opened(two_segments)
    path.unlink()
    assert index.held == [(21, 40)]
    path.write_bytes(content)
    assert index.held == [(1, 40)]
    index.close()


def test_a_segment_truncated_while_it_is_open_ends_no_process(two_segments: Path) -> None:
    index, path = opened(two_segments), min(two_segments.iterdir())
    assert_finds_all(index)
    content = path.read_bytes()
    os.truncate(path, BLOCK)
    with pytest.raises(PassagesDamaged, match=path.name):
        assert_finds_all(index)
    path.write_bytes(content)
    index.close()


class Crash(BaseException):
    """The process ends here."""


@pytest.fixture
def crash_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[str]]:
    """After so many operations on files, the next one raises Crash, and so do all after it.

    Returns the list of the operations done, which grows.
    """

    def arm(operations: int) -> list[str]:
        done: list[str] = []

        def crashing(owner: object, name: str) -> None:
            operation = getattr(owner, name)

            def run(*arguments: object) -> object:
                if len(done) == operations:
                    raise Crash
                done.append(name)
                return operation(*arguments)

            monkeypatch.setattr(owner, name, run)

        for owner, name in ((os, "pwrite"), (os, "fsync"), (Path, "replace"), (Path, "unlink")):
            crashing(owner, name)
        return done

    return arm


def run_with_crashes(
    folder: Path,
    change: Callable[[PassageIndex], object],
    crash_after: Callable[[int], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """Repeat a change of an index of the 40 stories until no operation on files crashes it; check it after each."""
    for operations in count():
        index, done = opened(folder), crash_after(operations)
        try:
            inserted(index, 1, 40)  # the ledger's outbox has what no segment holds
            change(index)
        except Crash:
            pass
        monkeypatch.undo()
        again = opened(folder)
        assert not list(again.check())
        inserted(again, 1, 40)
        assert_finds_all(again)
        again.close()
        if len(done) < operations:
            return done
    raise AssertionError


def test_a_crash_at_any_step_of_a_flush_leaves_a_readable_index(
    tmp_path: Path, crash_after: Callable[[int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    inserted(index := opened(tmp_path), 1, 20)
    index.flush(1, 20, MADE_AT)
    run_with_crashes(tmp_path, lambda index: index.flush(21, 40, MADE_AT), crash_after, monkeypatch)
    assert opened(tmp_path).held == [(1, 40)]
    opened(tmp_path).flush(41, 41, MADE_AT)
    assert len(list(tmp_path.iterdir())) == 3  # what the crashes left is removed


def test_a_crash_at_any_step_of_a_merge_leaves_a_readable_index(
    two_segments: Path, crash_after: Callable[[int], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with_crashes(two_segments, lambda index: index.merge(all_live, MADE_AT), crash_after, monkeypatch)
    index = opened(two_segments)
    assert index.held == [(1, 40)] and len(index.list_files()) == 1
    index.flush(41, 41, MADE_AT)
    assert len(list(two_segments.iterdir())) == 2


def test_a_segment_has_its_name_only_when_it_is_on_disk(
    tmp_path: Path, crash_after: Callable[[int], list[str]]
) -> None:
    index = opened(tmp_path)
    inserted(index, 1, 40)
    done = crash_after(1000)
    index.flush(1, 40, MADE_AT)
    steps = [step for n, step in enumerate(done) if step != "pwrite" or done[n - 1] != "pwrite"]
    assert steps == ["fsync", "pwrite", "fsync", "replace", "fsync"]  # first the folder after leftovers are removed


def test_checksums_are_xxh64() -> None:
    content = np.random.default_rng(2).integers(0, 256, 3 * BLOCK, np.uint8)
    expected = [xxhash.xxh64_intdigest(content[n * BLOCK :][:BLOCK].tobytes()) for n in range(3)]
    assert block_checksums(content).tolist() == expected


@pytest.mark.parametrize("postings", [0, 1, 1 << 22, (1 << 26) - 1, 1 << 26, 1_832_800_000])
def test_buckets_are_small_and_a_posting_takes_a_byte_more_than_its_number(postings: int) -> None:
    bucket_bits, _, _ = choose_bits(postings, 15_800_000)
    assert postings >> bucket_bits <= 64
    assert estimate_bytes(postings, 15_800_000) < (1 << 20) + (3 + 1.6) * postings


def test_a_format_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    header = Header(LEDGER, ALGORITHM, 1, 2, MADE_AT, 2, 3, 16, 1, 1, 0)
    assert read_header(write_header(header)) == header
    monkeypatch.setattr(segment, "FORMAT", 3)
    with pytest.raises(Fatal, match="has format 2; this neardup reads format 3"):
        read_header(write_header(header))
