"""Laws: the nominees of a story are those of brute force, best first, and the matches left out are counted; the
exhaustive comparison finds every pair that is close in Hamming distance or agrees in enough rows.

Brute force compares a story with each story that its lookup found, with its batch, and with each unindexed story.
Of the stories with higher ids, all outside the batch are nominees.
"""

from collections.abc import Mapping
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from neardup.core.candidates import select
from neardup.core.candidates.banding import FingerprintArrays, Numbers
from neardup.core.candidates.select import LEAST_ROWS, Nominee, compare, is_worth_comparing, merge_found, select_matches
from neardup.core.fingerprint.minhash import ROWS
from neardup.core.fingerprint.word_hashes import hash_rows, measure_hamming
from neardup.core.languages import LANGUAGES
from neardup.records import BandedFingerprint, Language

from tests.support.languages import HINDI, MARATHI, NAMES, NUMBER_OF, TAMIL
from tests.support.sampling import count_examples

ids = st.integers(0, 2**63 - 1)
# Variations of one hash and one signature, so that many are near and some equally near.
hashes = st.one_of(
    st.binary(min_size=16, max_size=16),
    st.sets(st.integers(0, 127), max_size=9).map(lambda bits: sum(1 << bit for bit in bits).to_bytes(16)),
)
signatures = st.one_of(
    st.none(), st.sets(st.integers(0, ROWS - 1), max_size=ROWS).map(lambda rows: bytes(n in rows for n in range(ROWS)))
)
two_languages = st.sampled_from([HINDI, MARATHI])
populations = st.dictionaries(
    ids, st.builds(BandedFingerprint, two_languages, hashes, signatures), min_size=1, max_size=20
)


class Thresholds(Struct, frozen=True):
    hamming: int
    bands: int
    shared_bands: int
    agreeing_rows: int
    max_matches: int


thresholds = st.fixed_dictionaries(
    dict.fromkeys(
        LANGUAGES,
        st.builds(
            Thresholds,
            st.integers(0, 7),
            st.sampled_from([8, 32]),
            *[st.integers(*n) for n in ((1, 3), (0, 64), (1, 6))],
        ),
    )
)


def bits_between(a: BandedFingerprint, b: BandedFingerprint) -> int:
    return (int.from_bytes(a.simhash) ^ int.from_bytes(b.simhash)).bit_count()


def rows_of(a: BandedFingerprint, b: BandedFingerprint) -> int:
    if a.signature is None or b.signature is None:
        return 0
    return sum(x == y for x, y in zip(a.signature, b.signature, strict=True))


def shared_bands(a: BandedFingerprint, b: BandedFingerprint, bands: int) -> int:
    if a.signature is None or b.signature is None:
        return 0
    return sum(a.signature[2 * n : 2 * n + 2] == b.signature[2 * n : 2 * n + 2] for n in range(bands))


@given(st.lists(hashes), hashes)
def test_hamming_is_the_count_of_differing_bits(rows: list[bytes], simhash: bytes) -> None:
    want = [(int.from_bytes(row) ^ int.from_bytes(simhash)).bit_count() for row in rows]
    assert measure_hamming(hash_rows(rows), hash_rows([simhash])).tolist() == want


class Found(Struct, frozen=True):
    """The result of a lookup: ids, or numbers."""

    ids: set[int]
    numbers: Numbers


def held(stories: Mapping[int, BandedFingerprint]) -> FingerprintArrays:
    """Arrays as from a ledger; the n-th story has the number 10 * n."""
    rows = (
        (10 * n, story_id, NUMBER_OF[fingerprint.language], fingerprint.simhash, fingerprint.signature)
        for n, (story_id, fingerprint) in enumerate(stories.items())
    )
    return FingerprintArrays.of(rows, NAMES)


def lookup_result(stories: Mapping[int, BandedFingerprint], by_id: set[int], by_number: set[int]) -> Found:
    """A lookup that finds some stories by id, some by number, and one number that is no longer in the ledger."""
    numbers = [10 * n for n, story_id in enumerate(stories) if story_id in by_number]
    return Found(by_id, np.array([*numbers, 10 * len(stories)], np.uint32))


def are_similar(first: BandedFingerprint, second: BandedFingerprint, thresholds: Thresholds) -> bool:
    shared = shared_bands(first, second, thresholds.bands) >= thresholds.shared_bands
    near = bits_between(first, second) <= thresholds.hamming
    return first.language == second.language and (
        near or (shared and rows_of(first, second) >= thresholds.agreeing_rows)
    )


@settings(deadline=None)
@given(populations, populations, st.integers(1, 3), thresholds, st.data())
def test_nominees_are_those_of_brute_force_best_first(
    others: dict[int, BandedFingerprint],
    batch: dict[int, BandedFingerprint],
    twins: int,
    thresholds: dict[Language, Thresholds],
    data: st.DataObject,
) -> None:
    groups = [
        ([story_id, *(-1 - n - 9 * k for k in range(twins - 1))], fingerprint)
        for n, (story_id, fingerprint) in enumerate(list(batch.items())[:4])
    ]
    inside = {story_id: group for ids, group in groups for story_id in ids}
    some = st.sets(st.sampled_from(list(others)))
    found = [(data.draw(some), data.draw(some)) for _ in groups]
    late = data.draw(some)
    expected = []
    for (ids, fingerprint), (by_id, by_number) in zip(groups, found, strict=True):
        for story_id in ids:
            candidates = {n: others[n] for n in by_id | by_number | late if n not in inside} | inside
            ranked = sorted(
                (-rows_of(fingerprint, other), bits_between(fingerprint, other), n)
                for n, other in candidates.items()
                if n != story_id and are_similar(fingerprint, other, thresholds[fingerprint.language])
            )
            most = thresholds[fingerprint.language].max_matches
            earlier = [n for *_, n in ranked if n < story_id]
            later = [n for *_, n in ranked if n > story_id and n not in inside]
            expected.append(Nominee(story_id, (*earlier[:most], *later), len(earlier[most:])))
    arrays = held(others)
    unindexed = arrays.where(np.isin(arrays.ids, list(late)))
    results = [lookup_result(others, *both) for both in found]
    with patch.object(select, "SCORED_AT_ONCE", data.draw(st.sampled_from([1, 9, select.SCORED_AT_ONCE]))):
        assert select_matches(groups, results, arrays, thresholds, unindexed) == expected


@given(st.lists(st.tuples(st.sets(ids), st.sets(st.integers(0, 2**32 - 1))), max_size=4))
def test_found_ids_and_numbers_are_merged_without_duplicates(results: list[tuple[set[int], set[int]]]) -> None:
    found = [Found(by_id, np.array(sorted(by_number), np.uint32)) for by_id, by_number in results]
    assert merge_found(found) == (
        {n for by_id, _ in results for n in by_id},
        sorted({n for _, by_number in results for n in by_number}),
    )


@settings(deadline=None)
@given(*[st.builds(BandedFingerprint, two_languages, hashes, signatures)] * 2, thresholds)
def test_stories_worth_comparing_would_nominate_each_other(
    first: BandedFingerprint, second: BandedFingerprint, thresholds: dict[Language, Thresholds]
) -> None:
    assert is_worth_comparing(first, second, thresholds[first.language]) == are_similar(
        first, second, thresholds[first.language]
    )


@pytest.mark.parametrize("found", [Found(set(), np.empty(0, np.uint32)), Found({9}, np.array([9], np.uint32))])
def test_a_lookup_without_stories_has_no_nominees(found: Found) -> None:
    lone = BandedFingerprint(TAMIL, bytes(16), bytes(ROWS))
    wanted = dict.fromkeys(LANGUAGES, Thresholds(3, 32, 2, 10, 50))
    assert select_matches([([7], lone)], [found], held({}), wanted) == [Nominee(7, (), 0)], (
        "a deleted story was nominated"
    )
    assert select_matches([([7], lone)], [found], held({8: lone}), wanted) == [Nominee(7, (), 0)]
    assert select_matches([], [], held({}), wanted) == []


HAMMING = 3
# Few values, so that rows and bits of unrelated repetitive_stories are often equal.
repetitive_hashes = st.lists(st.sampled_from([0, 1, 128, 255]), min_size=16, max_size=16).map(bytes)
repetitive_signatures = st.none() | st.integers(0, 12).flatmap(
    lambda n: st.binary(min_size=64 - n, max_size=64 - n).map(lambda rest: bytes(n) + rest)
)
repetitive_stories = st.lists(st.tuples(repetitive_hashes, repetitive_signatures), max_size=12)
Story = tuple[bytes, bytes | None]


def arrays(some: list[Story]) -> FingerprintArrays:
    return FingerprintArrays.of(((n, n, 0, *story) for n, story in enumerate(some)), NAMES)


def agreeing(first: Story, second: Story) -> int:
    a, b = first[1], second[1]
    return 0 if a is None or b is None else sum(x == y for x, y in zip(a, b, strict=True))


@settings(max_examples=count_examples(60))
@given(repetitive_stories, repetitive_stories)
def test_every_close_pair_is_found(some: list[Story], others: list[Story]) -> None:
    found = compare(arrays(some), arrays(others), HAMMING)
    expected = {
        (i, k, agreeing(left_story, other))
        for i, left_story in enumerate(some)
        for k, other in enumerate(others)
        if (int.from_bytes(left_story[0]) ^ int.from_bytes(other[0])).bit_count() <= HAMMING
        or agreeing(left_story, other) >= LEAST_ROWS
    }
    columns = (column.tolist() for column in found)
    assert set(zip(*columns, strict=True)) == expected
    assert all(np.issubdtype(column.dtype, np.int64) for column in found)
