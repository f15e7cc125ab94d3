"""Laws: the buckets of keys give each pair of similar fingerprints once, those of hashes each pair that shares two."""

from collections import defaultdict
from itertools import chain, combinations, combinations_with_replacement, pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.candidates.key_pairs import (
    Buckets,
    HashBuckets,
    KeyTable,
    find_pairs_in_buckets,
    find_pairs_in_hash_buckets,
    make_keys,
)
from neardup.core.candidates.select import find_alike_pairs, make_arrays, make_columns
from neardup.core.fingerprint.word_hashes import MIN_SHARED
from neardup.core.sets import find_edges
from neardup.records import BandedFingerprint

from tests.core.candidates.test_select import Thresholds, hashes, signatures
from tests.support.languages import HINDI, MARATHI
from tests.support.sampling import count_examples

MANY = 10**6
NAMES = {0: HINDI, 1: MARATHI}
stories = st.lists(st.builds(BandedFingerprint, st.sampled_from([HINDI, MARATHI]), hashes, signatures), max_size=14)
limits = st.builds(
    Thresholds, st.integers(0, 7), st.sampled_from([8, 32]), st.integers(1, 3), st.integers(0, 64), st.just(MANY)
)


def joined(
    drawn: list[BandedFingerprint], own: Thresholds, first_id: int, part: int = MANY
) -> tuple[list[tuple[int, int]], int]:
    """The pairs that all buckets give, by position, and how many are left out; every two parts are joined apart."""
    rows = make_arrays(drawn, NAMES)
    table = KeyTable.of({HINDI: own, MARATHI: own})
    keys, of = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for language in (0, 1):
        chosen = np.flatnonzero(rows.languages == language)
        found, stories_of = make_keys(
            rows.simhashes[chosen], rows.signatures[chosen], rows.signed[chosen], table, language
        )
        keys.append(found)
        of.append(chosen[stories_of])
    all_keys, owners = np.concatenate(keys), np.concatenate(of)
    order = np.lexsort((owners, all_keys))
    all_keys, owners = all_keys[order], owners[order]
    rows_of, bucket_keys, splits = list[list[int]](), list[int](), list[int]()
    for start, stop in pairwise(find_edges(all_keys).tolist()):
        parts = [list(range(at, min(at + part, stop))) for at in range(start, stop, part)]
        for first, second in combinations_with_replacement(parts, 2):
            rows_of.append(first if first is second else first + second)
            bucket_keys.append(int(all_keys[start]))
            splits.append(0 if first is second else len(first))
    owners = owners[np.array(list(chain.from_iterable(rows_of)), np.int64)]
    buckets = Buckets(
        np.cumsum([0, *map(len, rows_of)]),
        np.array(bucket_keys, np.uint64),
        np.array(splits, np.int64),
        owners + first_id,
        (rows.languages[owners], rows.simhashes[owners], rows.signatures[owners], rows.signed[owners]),
    )
    pairs = find_pairs_in_buckets(buckets, table)
    return list(zip(owners[pairs.left].tolist(), owners[pairs.right].tolist(), strict=True)), int(pairs.left_out.sum())


def brute_force(drawn: list[BandedFingerprint], own: Thresholds) -> set[tuple[int, int]]:
    table = np.array([[own.hamming, own.bands, own.shared_bands, own.agreeing_rows]] * 2)
    columns = make_columns(make_arrays(drawn, NAMES))
    left, right, _, _ = find_alike_pairs(columns, columns, table, True)
    return set(zip(left.tolist(), right.tolist(), strict=True))


@settings(max_examples=count_examples(60))
@given(stories, limits, st.sampled_from([1, 2, 3, MANY]))
def test_each_similar_pair_is_found_once(drawn: list[BandedFingerprint], own: Thresholds, part: int) -> None:
    found, left_out = joined(drawn, own, first_id=1, part=part)
    assert len(found) == len(set(found)), "a pair was found at two of its keys, or in two tasks"
    assert set(found) == brute_force(drawn, own)
    assert not left_out


def test_a_story_has_its_best_matches_and_the_others_are_counted() -> None:
    own = Thresholds(3, 32, 2, 10, 2)
    copies = [BandedFingerprint(HINDI, bytes(16), bytes([1] * 64)) for _ in range(5)]
    found, left_out = joined(copies, own, first_id=1)
    assert sorted(found) == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)]
    assert left_out == 3


def test_works_are_not_paired_with_works() -> None:
    copies = [BandedFingerprint(HINDI, bytes(16), bytes([1] * 64)) for _ in range(3)]
    found, _ = joined(copies, Thresholds(3, 32, 2, 10, MANY), first_id=-2)  # ids -2, -1, 0
    assert sorted(found) == [(0, 2), (1, 2)]


@settings(max_examples=count_examples(60))
@given(st.lists(st.sets(st.integers(0, 12), max_size=8), max_size=10))
def test_each_pair_that_shares_hashes_is_found_once(drawn: list[set[int]]) -> None:
    holders = defaultdict(list)
    for story, own in enumerate(drawn):
        for passage in own:
            holders[passage].append(story)
    rows = [(passage, story) for passage in sorted(holders) for story in holders[passage]]
    lists = [sorted(drawn[story]) for _, story in rows]
    size = len(rows)
    dissimilar = np.zeros((size, 64), np.uint8)
    simhashes = np.array([[(1 << 64) - 1, 0] if story % 2 else [0, story] for _, story in rows], np.uint64).reshape(
        -1, 2
    )
    arrays = (
        np.array([story for _, story in rows], np.uint8),  # each in a language of its own, so that none are alike
        simhashes,
        dissimilar,
        np.zeros(size, np.bool_),
    )
    passages = np.array([passage for passage, _ in rows], np.int64)
    edges = find_edges(passages)
    buckets = HashBuckets(
        edges,
        passages[edges[:-1]],
        np.array([story + 1 for _, story in rows], np.int64),
        np.array([passage for own in lists for passage in own], np.int64),
        np.append(0, np.cumsum([len(own) for own in lists])).astype(np.int64),
        arrays,
    )
    found = find_pairs_in_hash_buckets(buckets, np.zeros((len(drawn), 4), np.int64))
    pairs = [
        (rows[first][1], rows[second][1])
        for first, second in zip(found.left.tolist(), found.right.tolist(), strict=True)
    ]
    expected = {
        (first, second): len(drawn[first] & drawn[second])
        for first, second in combinations(range(len(drawn)), 2)
        if len(drawn[first] & drawn[second]) >= MIN_SHARED
    }
    assert len(pairs) == len(set(pairs))
    assert dict(zip(pairs, found.shared.tolist(), strict=True)) == expected
