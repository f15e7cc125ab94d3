"""Loads the compiled functions of a run or a sweep ahead of their first call, compiling those that are not cached.

Compiling takes about ten seconds.  It happens once on a machine, since numba keeps the machine code; a run that knows
of it can say so and leave it out of its rate.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from neardup.core.candidates.banding import Banding, Numbers
from neardup.core.candidates.hash_pairs import HashBuckets, pairs_in_hash_buckets
from neardup.core.candidates.key_pairs import Buckets, KeyTable, pairs_in_buckets
from neardup.core.candidates.passage_groups import count_shared, cut_into_groups, list_earlier
from neardup.core.candidates.select import NO_NUMBERS, NO_STORIES, nominate
from neardup.core.candidates.shared_buckets import shared_by
from neardup.core.candidates.shared_passages import sharing_pairs
from neardup.core.candidates.top_k import LanguageFingerprints, nominated_pairs
from neardup.core.fingerprint.compute import fingerprint_text, hashed_text
from neardup.core.text.characters import characters
from neardup.core.text.normalize import codes_of
from neardup.core.text.scripts import script_of_most
from neardup.core.verify.alignment import MIN_BLOCK, aligned
from neardup.records import BandedFingerprint, Language

LANGUAGE = Language("ANY")


class _Thresholds(NamedTuple):
    hamming: int = 3
    bands: int = 32
    shared_bands: int = 2
    agreeing_rows: int = 1
    max_matches: int = 1
    max_bucket: int = 2


class _NothingFound(NamedTuple):
    ids: Collection[int] = ()
    numbers: Numbers = NO_NUMBERS


def load_for_run() -> None:
    """Load the functions that fingerprint, look up, nominate and verify stories."""
    fingerprint_text("a b")
    hashed_text("a b")
    script_of_most("a b")
    characters(codes_of("a b"))
    load_for_verification()
    sharing_pairs([np.zeros(1, np.uint32)], 1)
    shared_by(np.zeros(2, np.uint32), np.arange(3), np.array([[0, 1]]), 2)
    held = NO_STORIES.of((), {0: LANGUAGE})
    group = [1], BandedFingerprint(LANGUAGE, bytes(16), bytes(64))
    nominate([group], [_NothingFound()], held, {LANGUAGE: _Thresholds()}, held)


def load_for_verification() -> None:
    """Load the functions that align two texts."""
    words = np.arange(MIN_BLOCK, dtype=np.uint64)
    aligned(words, words)


def load_for_sweep() -> None:
    """Load the functions that join the buckets and the passages of all stories, and verify pairs."""
    load_for_verification()
    stories = LanguageFingerprints.zeros(4)
    stories.signed[:] = True
    for _ in nominated_pairs(stories, Banding(max_bucket=2), 1):
        pass
    groups, _ = cut_into_groups(np.arange(2, dtype=np.uint64), np.zeros(2, np.uint8), 2, np.zeros(2, np.uint32))
    list_earlier(groups, 0, np.zeros(1, np.uint32), np.zeros(2, np.int64))
    count_shared(np.zeros(1, np.uint32), np.array([0, 0, 1]), 0)


def load_for_spark() -> None:
    """Load the functions that join the buckets of keys and of passage hashes, and verify pairs."""
    load_for_verification()
    table = KeyTable.of({LANGUAGE: _Thresholds()})
    none, edges = np.zeros(0, np.int64), np.zeros(1, np.int64)
    arrays = none.astype(np.uint8), np.zeros((0, 2), np.uint64), np.zeros((0, 64), np.uint8), none.astype(np.bool_)
    similar = *arrays, np.zeros((0, 8), np.uint64)
    no_keys = np.zeros(0, np.uint64)
    pairs_in_buckets(Buckets(edges, no_keys, none, none, no_keys, similar), table)
    pairs_in_hash_buckets(HashBuckets(edges, none, none, none, edges, similar), table.thresholds)
