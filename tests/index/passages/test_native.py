"""Law: the native core finds, writes and reads of a segment what the references do, whatever the file holds."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.native.segments import Bytes, Coding, SegmentBlocks
from neardup.index.passages.postings import Keys, PassageHashes, decode, encode
from neardup.index.passages.segment import BLOCK, block_checksums, find, read_numbers, round_up

from tests.support.sampling import EXAMPLES

pytestmark = pytest.mark.native

codings = st.sampled_from(
    [Coding(16, 0, 1, 1), Coding(16, 6, 32, 7), Coding(17, 6, 22, 900), Coding(16, 4, 31, 2**31), Coding(19, 6, 9, 0)]
)
BUCKETS = 8  # only the first ones have postings
seeds = st.integers(0, 2**32 - 1)
sizes = st.sampled_from([0, 1, 31, 32, 60, 511, 512, 2047, 2048, 2049, 3 * BLOCK])  # up to tables of heads, and blocks
in_each_bucket = st.lists(sizes, min_size=BUCKETS, max_size=BUCKETS)


def keys_of(random: np.random.Generator, coding: Coding, in_buckets: list[int]) -> Keys:
    """So many random keys in each of the first buckets; hashes repeat."""
    numbers = coding.first + random.integers(0, 1 << min(coding.number_bits, 31), sum(in_buckets), np.uint64)
    heads = random.integers(0, coding.heads, sum(in_buckets), np.uint64)
    lows = random.integers(0, min(1 << coding.low_bits, 30), sum(in_buckets), np.uint64)
    buckets = np.repeat(np.arange(len(in_buckets), dtype=np.uint64), in_buckets)
    hashes = (buckets << np.uint64(coding.head_bits) | heads) << np.uint64(coding.low_bits) | lows
    return np.sort(hashes << np.uint64(32) | numbers)


def file_of(coding: Coding, keys: Keys) -> Bytes:
    """The header, which is empty, directory and postings, each in whole blocks."""
    offsets, content = encode(keys, coding, range(BUCKETS), 0)
    directory = np.full((1 << coding.bucket_bits) + 1, len(keys), np.uint32)
    directory[:BUCKETS] = offsets
    parts = np.zeros(BLOCK, np.uint8), directory.view(np.uint8), content
    return np.concatenate([np.pad(part, (0, round_up(len(part)) - len(part))) for part in parts])


@contextmanager
def segment_of(file: Bytes, coding: Coding, postings: int, checksums: Bytes, stop: int) -> Iterator[SegmentBlocks]:
    """A segment with this file, up to `stop`, and the checksums of another one."""
    start = BLOCK + round_up(4 * ((1 << coding.bucket_bits) + 1))
    sums = block_checksums(checksums[BLOCK:])
    with TemporaryFile() as opened:
        opened.write(file[:stop].tobytes())
        opened.flush()
        yield SegmentBlocks(opened.fileno(), coding, postings, start, sums, np.zeros(len(sums), np.bool_))


def probes_of(random: np.random.Generator, keys: Keys) -> PassageHashes:
    held = random.choice((keys >> np.uint64(32)).astype(np.uint32), 20) if len(keys) else np.empty(0, np.uint32)
    ends = np.array([0, 1, 2**32 - 1], np.uint32)
    return np.concatenate([np.sort(held), held + np.uint32(1), ends, random.integers(0, 2**32, 5, np.uint32)])


def assert_same(segment: SegmentBlocks, hashes: PassageHashes) -> bool:
    """Lookups give the same, and mark the same blocks as verified; returns whether nothing was damaged."""
    other = segment._replace(verified=segment.verified.copy())
    found, expected = find(segment, hashes), find.reference(other, hashes)
    assert (found is None) == (expected is None), "only one of them saw damage"
    np.testing.assert_array_equal(segment.verified, other.verified, "other blocks were verified")
    if found is None or expected is None:
        return False
    np.testing.assert_array_equal(found, expected, "places and counts")
    numbers, plain = read_numbers(segment, *found), read_numbers.reference(other, *found)
    np.testing.assert_equal(numbers, plain, "the numbers of the postings")
    return numbers is not None


def assert_finds_all(coding: Coding, seed: int, in_buckets: list[int]) -> None:
    random = np.random.default_rng(seed)
    keys = keys_of(random, coding, in_buckets)
    file, hashes = file_of(coding, keys), probes_of(random, keys)
    with segment_of(file, coding, len(keys), file, len(file)) as segment:
        assert assert_same(segment, hashes), "a whole segment is damaged"
        found = find(segment, hashes)
        assert found is not None
        np.testing.assert_array_equal(found[1], [(keys >> np.uint64(32) == passage).sum() for passage in hashes])
        expected = [keys[keys >> np.uint64(32) == passage] & np.uint64(2**32 - 1) for passage in hashes]
        np.testing.assert_array_equal(read_numbers(segment, *found), np.concatenate(expected))


@settings(max_examples=EXAMPLES, deadline=None)
@given(codings, seeds, in_each_bucket)
@example(Coding(16, 6, 24, 1), 1, [0, 2048, 60, 1, 3 * BLOCK, 2047, 0, 60])
def test_lookups_find_the_postings(coding: Coding, seed: int, in_buckets: list[int]) -> None:
    assert_finds_all(coding, seed, in_buckets)


@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(codings, seeds, in_each_bucket, st.booleans(), st.data())
def test_damage_is_seen_alike(
    coding: Coding, seed: int, in_buckets: list[int], forged: bool, data: st.DataObject
) -> None:
    """In bytes, by truncation, and in bytes whose checksums are forged, so that only their meaning can be wrong."""
    random = np.random.default_rng(seed)
    keys = keys_of(random, coding, in_buckets)
    file, hashes = file_of(coding, keys), probes_of(random, keys)
    damaged, content = file.copy(), len(file) - round_up(coding.size(range(BUCKETS), 0, len(keys)))
    of_bytes = st.integers(BLOCK, BLOCK + 4 * BUCKETS) | st.integers(content - 1, len(file) - 1)
    for place in data.draw(st.lists(of_bytes, max_size=4)):
        damaged[place] ^= random.integers(1, 256)
    stop = data.draw(st.sampled_from([len(file), len(file) - 1, content + 1, content, BLOCK + 10, 0]))
    postings = data.draw(st.sampled_from([len(keys), 0, 2**32 - 1]))
    with segment_of(damaged, coding, postings, damaged if forged else file, stop) as segment:
        assert_same(segment, hashes)
        wild = segment._replace(postings_start=data.draw(st.sampled_from([0, BLOCK, content - 1, 2**40])))
        assert_same(wild._replace(verified=np.zeros(len(wild.verified), np.bool_)), hashes)
        for place in (0, BLOCK - 1, BLOCK, len(file) - 1, len(file), 2**40):
            arguments = np.array([place], np.int64), np.array([1], np.int64)
            np.testing.assert_equal(read_numbers(segment, *arguments), read_numbers.reference(segment, *arguments))


def test_a_file_that_cannot_be_read_is_damaged() -> None:
    coding, keys = Coding(16, 2, 1, 1), np.empty(0, np.uint64)
    file = file_of(coding, keys)
    with segment_of(file, coding, 0, file, len(file)) as segment:
        unreadable = segment._replace(descriptor=os.open(os.devnull, os.O_WRONLY))
        try:
            assert not assert_same(unreadable, np.zeros(1, np.uint32))
        finally:
            os.close(unreadable.descriptor)
        impossible = segment._replace(coding=Coding(25, 7, 9, 1))
        assert find(impossible, np.zeros(1, np.uint32)) is None


@given(codings, seeds, in_each_bucket)
@settings(max_examples=EXAMPLES, deadline=None)
def test_postings_are_written_and_read_alike(coding: Coding, seed: int, in_buckets: list[int]) -> None:
    keys = keys_of(np.random.default_rng(seed), coding, in_buckets)
    buckets, preceding = range(BUCKETS), 5  # as of a later part of a segment
    offsets, content = encode(keys, coding, buckets, preceding)
    for written, expected in zip((offsets, content), encode.reference(keys, coding, buckets, preceding), strict=True):
        np.testing.assert_array_equal(written, expected)
    edges = np.append(offsets, np.uint32(preceding + len(keys)))
    np.testing.assert_array_equal(decode(content, coding, 0, edges), keys)
    np.testing.assert_array_equal(decode.reference(content, coding, 0, edges), keys)


@pytest.mark.parametrize(
    ("what", "keys"),
    [
        ("a key before the buckets", [1 << 48 | 9, 2 << 48 | 9]),
        ("a key after the buckets", [2 << 48 | 9, 4 << 48 | 9]),
        ("buckets that descend", [3 << 48 | 9, 2 << 48 | 9]),
        ("a number before the first", [2 << 48 | 8]),
        ("hashes that descend", [2 << 48 | 1 << 32 | 9, 2 << 48 | 9]),
        ("a number of too many bits", [2 << 48 | 9 + 256]),
    ],
)
def test_keys_that_do_not_fit_are_refused(what: str, keys: list[int]) -> None:
    for function in (encode, encode.reference):
        with pytest.raises(ValueError, match=r"contradicts|other buckets|no room"):
            pytest.fail(f"{what}: {function(np.array(keys, np.uint64), Coding(16, 2, 8, 9), range(2, 4), 0)}")


@given(codings, seeds, in_each_bucket, st.data())
@settings(max_examples=EXAMPLES, deadline=None)
def test_bytes_that_are_no_postings_are_refused_alike(
    coding: Coding, seed: int, in_buckets: list[int], data: st.DataObject
) -> None:
    """Those of which some bytes or offsets were changed."""
    random = np.random.default_rng(seed)
    keys = keys_of(random, coding, in_buckets)
    offsets, content = encode(keys, coding, range(BUCKETS), 0)
    edges = np.append(offsets, np.uint32(len(keys)))
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[place] ^= random.integers(1, 256)
    for edge in data.draw(st.lists(st.integers(0, BUCKETS), max_size=1)):
        edges[edge] = data.draw(st.integers(0, 2**32 - 1) | st.sampled_from([0, len(keys)]))
    found = []
    for function in (decode, decode.reference):
        try:
            found.append(function(content, coding, 0, edges).tolist())
        except ValueError:
            found.append(None)
    assert found[0] == found[1]


@given(st.integers(0, 3), seeds)
def test_checksums_are_those_of_the_reference(blocks: int, seed: int) -> None:
    content = np.random.default_rng(seed).integers(0, 256, blocks * BLOCK + 1, np.uint8)[1:]
    np.testing.assert_array_equal(block_checksums(content), block_checksums.reference(content))
    with pytest.raises(ValueError):  # noqa: PT011 - a part of a block
        block_checksums(content[1:] if blocks else np.zeros(1, np.uint8))
