"""Laws: the pairs are those of brute force, each once, whatever the distance, bands and chunk size; the shortlist is
what lookups would have nominated if the stories had been processed one by one; shared numbers are those that counting
each number gives.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.candidates import all_pairs
from neardup.core.candidates.all_pairs import (
    LanguageFingerprints,
    PairChunk,
    Shortlist,
    find_near_pairs,
    find_nominated_pairs,
    find_shared,
    find_signature_pairs,
)
from neardup.core.candidates.banding import MAX_DISTANCE, Banding
from neardup.core.candidates.select import select_matches
from neardup.core.fingerprint.minhash import ROWS, stack_signatures
from neardup.core.fingerprint.word_hashes import hash_rows
from neardup.records import BandedFingerprint

from tests.core.candidates.test_select import Found, Thresholds, hashes, ids
from tests.core.candidates.test_select import held as fingerprint_arrays
from tests.core.candidates.test_select import signatures as signatures_of_select
from tests.support.builders import signature_band_values
from tests.support.languages import ODIA

Pair = tuple[int, int]
# Variations of two values, so that many pairs are near, many are equal, and some are equal in a few bands only.
bases = st.sampled_from([bytes(ROWS), bytes(range(ROWS))])
simhashes = st.builds(
    lambda base, bits: (int.from_bytes(base[:16]) ^ sum(1 << bit for bit in bits)).to_bytes(16),
    bases,
    st.sets(st.integers(0, 127), max_size=6),
)
signatures = st.builds(
    lambda base, rows: bytes(rows.get(n, base[n]) for n in range(ROWS)),
    bases,
    st.one_of(
        st.just({}),
        st.dictionaries(st.integers(0, ROWS - 1), st.integers(0, 2), max_size=ROWS),
        # all but a few bands replaced
        st.builds(
            lambda kept, row: {n: row for n in range(ROWS) if n // 2 not in kept},
            st.sets(st.integers(0, 7), min_size=2, max_size=4),
            st.integers(100, 104),
        ),
    ),
)
chunk_sizes = st.sampled_from([1, 7, all_pairs.CHUNK_PAIRS])
bandings = st.builds(Banding, bands=st.sampled_from([8, 16, 32]), shared=st.integers(1, 3))


def collected(chunks: Iterable[PairChunk]) -> set[Pair]:
    found: list[Pair] = []
    done = [0.0]
    for chunk in chunks:
        found += zip(chunk.left.tolist(), chunk.right.tolist(), strict=True)
        done.append(chunk.done)
    assert done == sorted(done) and done[-1] == 1, f"progress must rise to 1: {done}"
    assert len(found) == len(set(found)), "a pair was found twice"
    assert all(left < right for left, right in found), "a pair must be ascending"
    return set(found)


def differing(a: bytes, b: bytes) -> int:
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


@settings(deadline=None)
@given(st.lists(simhashes, max_size=24), st.integers(0, MAX_DISTANCE), chunk_sizes)
def test_near_pairs_are_those_of_brute_force(stories: list[bytes], distance: int, chunk_size: int) -> None:
    with patch.object(all_pairs, "CHUNK_PAIRS", chunk_size):
        found = collected(find_near_pairs(hash_rows(stories), distance))
    near = {(i, j) for i, j in combinations(range(len(stories)), 2) if differing(stories[i], stories[j]) <= distance}
    assert found == near


@settings(deadline=None)
@example([bytes(ROWS), bytes(4) + bytes([7]) * 60], Banding(shared=3), 0, 7)
@given(st.lists(st.one_of(st.none(), signatures), max_size=24), bandings, st.sampled_from([0, 4, 10, 40]), chunk_sizes)
def test_signature_pairs_are_those_of_brute_force(
    stories: list[bytes | None], banding: Banding, agreeing_rows: int, chunk_size: int
) -> None:
    bands, shared = banding.bands, banding.shared
    signed = [n for n, story in enumerate(stories) if story is not None]
    with patch.object(all_pairs, "CHUNK_PAIRS", chunk_size):
        found = collected(
            find_signature_pairs(
                stack_signatures(stories),
                np.array(signed, np.int64),
                bands=bands,
                shared=shared,
                agreeing_rows=agreeing_rows,
            )
        )
    values = {n: signature_band_values(stories[n], bands) for n in signed}

    def are_similar(i: int, j: int) -> bool:
        bands_shared = sum(a == b for a, b in zip(values[i], values[j], strict=True))
        rows = sum(a == b for a, b in zip(stories[i] or b"", stories[j] or b"", strict=True))
        return bands_shared >= shared and rows >= agreeing_rows

    assert found == {(i, j) for i, j in combinations(signed, 2) if are_similar(i, j)}


@pytest.mark.parametrize("distance", [-1, 8])
def test_a_distance_beyond_the_bands_is_refused(distance: int) -> None:
    with pytest.raises(ValueError, match="0 to 7"):
        next(find_near_pairs(np.zeros((2, 2), np.uint64), distance))


def test_a_large_bucket_fits_in_chunks_of_bounded_size() -> None:
    story = np.zeros((800, ROWS), np.uint8)
    sizes = [
        len(chunk.left) for chunk in find_signature_pairs(story, np.arange(800), bands=32, shared=2, agreeing_rows=10)
    ]
    assert sum(sizes) == 800 * 799 // 2 > all_pairs.CHUNK_PAIRS
    assert max(sizes) <= all_pairs.CHUNK_PAIRS


UNLIMITED = 10**6
stories = st.dictionaries(ids, st.builds(BandedFingerprint, st.just(ODIA), hashes, signatures_of_select), max_size=16)
thresholds = st.builds(
    Thresholds, st.integers(0, 7), st.sampled_from([8, 32]), *[st.integers(*n) for n in ((1, 3), (0, 64), (1, 6))]
)


def fingerprints(stories: dict[int, BandedFingerprint]) -> LanguageFingerprints:
    stories = dict(sorted(stories.items()))
    return LanguageFingerprints(
        np.array(list(stories), np.int64),
        hash_rows([banded.simhash for banded in stories.values()]),
        stack_signatures([banded.signature for banded in stories.values()]),
        np.array([banded.signature is not None for banded in stories.values()], np.bool_),
    )


def one_by_one(stories: dict[int, BandedFingerprint], thresholds: Thresholds) -> tuple[set[tuple[int, int]], int]:
    """The pairs that lookups nominate, of each story and those with lower ids, and how many are left out."""
    pairs: set[tuple[int, int]] = set()
    left_out = 0
    for story_id, banded in stories.items():
        before = {other: stories[other] for other in stories if other < story_id}
        found = Found(set(before), np.empty(0, np.uint32))
        [nominee] = select_matches([([story_id], banded)], [found], fingerprint_arrays(before), {ODIA: thresholds})
        pairs |= {(story_id, match) for match in nominee.matches}
        left_out += nominee.capped
    return pairs, left_out


@settings(deadline=None)
@given(stories, thresholds, st.sampled_from([1, 5, all_pairs.MIN_UNSORTED]))
def test_the_shortlist_is_what_lookups_would_have_nominated(
    stories: dict[int, BandedFingerprint], thresholds: Thresholds, sort_at: int
) -> None:
    shortlist = Shortlist(fingerprints(stories), thresholds.max_matches)
    with patch.object(all_pairs, "MIN_UNSORTED", sort_at):
        banding = Banding(thresholds.hamming, thresholds.bands, thresholds.shared_bands)
        for chunk in find_nominated_pairs(fingerprints(stories), banding, thresholds.agreeing_rows):
            shortlist.add(chunk.left, chunk.right)
    pages = list(shortlist.pages(3))
    assert all(len(page) <= 3 for page in pages)
    pairs = [pair for page in pages for pair in page]
    assert len(pairs) == len(shortlist) == len(set(pairs)), "a pair is listed twice"
    assert (set(pairs), shortlist.left_out) == one_by_one(stories, thresholds)
    assert bool(shortlist.cut) == bool(shortlist.left_out)
    assert all(sum(story == cut for story, _ in pairs) == thresholds.max_matches for cut in shortlist.cut)


@settings(deadline=None)
@given(stories, thresholds)
def test_a_pair_added_again_changes_nothing(stories: dict[int, BandedFingerprint], thresholds: Thresholds) -> None:
    once, twice = (Shortlist(fingerprints(stories), UNLIMITED) for _ in range(2))
    banding = Banding(thresholds.hamming, thresholds.bands, thresholds.shared_bands)
    for chunk in find_nominated_pairs(fingerprints(stories), banding, thresholds.agreeing_rows):
        for shortlist in (once, twice, twice):
            shortlist.add(chunk.left, chunk.right)
    assert list(once.pages(100)) == list(twice.pages(100))


@pytest.mark.parametrize("most", [1, 3])
def test_the_lowest_ids_win_among_equals(most: int) -> None:
    equal = dict.fromkeys([50, 40, 30, 20, 60], BandedFingerprint(ODIA, bytes(16), bytes(ROWS)))
    shortlist = Shortlist(fingerprints(equal), most)
    for chunk in find_nominated_pairs(fingerprints(equal), Banding(), 10):
        shortlist.add(chunk.left, chunk.right)
    best = [match for page in shortlist.pages(100) for story_id, match in page if story_id == 60]
    assert best == [20, 30, 40][:most], "matches are not in order"


numbers = st.one_of(st.integers(0, 30), st.integers(0, 2**32 - 1))
buckets = st.lists(st.sets(numbers, max_size=40), min_size=1, max_size=8)


@settings(deadline=None)
@given(buckets, st.integers(1, 4), st.data())
def test_numbers_in_enough_buckets_are_found(buckets: list[set[int]], least: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, 5), "buckets per lookup")
    lookups = data.draw(
        st.lists(st.permutations(range(len(buckets))).map(lambda order: order[:k]), max_size=4), "lookups"
    )
    k = min(k, len(buckets))
    members = np.array([number for bucket in buckets for number in sorted(bucket)], np.uint32)
    edges = np.cumsum([0, *map(len, buckets)])
    found, ends = find_shared(members, edges, np.array(lookups, np.int64).reshape(len(lookups), k), least)
    for n, lookup in enumerate(lookups):
        count = Counter(number for bucket in lookup for number in buckets[bucket])
        expected = sorted(number for number, times in count.items() if times >= least)
        assert found[ends[n] : ends[n + 1]].tolist() == expected


@pytest.mark.parametrize("least", [1, 2, 3])
def test_large_buckets_are_counted_exactly(least: int) -> None:
    rng = np.random.default_rng(least)
    buckets = [rng.choice(20_000, 3000, replace=False).astype(np.uint32) for _ in range(12)]
    edges = np.arange(13) * 3000
    found, ends = find_shared(np.concatenate(buckets), edges, np.arange(12).reshape(2, 6), least)
    for n in range(2):
        count = np.bincount(np.concatenate(buckets[6 * n : 6 * n + 6]))
        assert found[ends[n] : ends[n + 1]].tolist() == np.flatnonzero(count >= least).tolist()
