"""Law: the shortlist is what lookups would have nominated if the stories had been processed one by one."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.candidates import top_k
from neardup.core.candidates.banding import Banding
from neardup.core.candidates.select import select_matches
from neardup.core.candidates.top_k import LanguageFingerprints, Shortlist, find_nominated_pairs
from neardup.core.fingerprint.minhash import ROWS, stack_signatures
from neardup.core.fingerprint.word_hashes import hash_rows
from neardup.records import BandedFingerprint

from tests.core.candidates.test_select import Found, Thresholds, hashes, ids, signatures
from tests.core.candidates.test_select import held as fingerprint_arrays
from tests.support.languages import ODIA

UNLIMITED = 10**6
stories = st.dictionaries(ids, st.builds(BandedFingerprint, st.just(ODIA), hashes, signatures), max_size=16)
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
@given(stories, thresholds, st.sampled_from([1, 5, top_k.MIN_UNSORTED]))
def test_the_shortlist_is_what_lookups_would_have_nominated(
    stories: dict[int, BandedFingerprint], thresholds: Thresholds, sort_at: int
) -> None:
    shortlist = Shortlist(fingerprints(stories), thresholds.max_matches)
    with patch.object(top_k, "MIN_UNSORTED", sort_at):
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
