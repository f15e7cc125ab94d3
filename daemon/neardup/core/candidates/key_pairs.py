"""Pairs of similar fingerprints by the keys that they share, and pairs that share passage hashes, each at one of them.

A story has a key for each group of its SimHash's bands, and one for each band of its signature.  A bucket is the
stories that share a key.  From the two fingerprints alone follows the key at which a pair is compared: the first that
they share.  So buckets can be joined anywhere, in any order, and no found pair need be remembered: no distinct over all
pairs is needed.  A large bucket is divided into parts, and every two parts are joined apart from the others.

Passage hashes likewise make buckets, and a pair is compared at the first hash that it shares.  Each story brings the
list of its hashes that others hold, too, so that a bucket's pairs can be counted without the other buckets.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BANDS, ROWS_A_BAND, Flags, Indices, divide_bands
from neardup.core.candidates.select import Arrays, NominationThresholds, Thresholds, score_pairs
from neardup.core.fingerprint.minhash import SignatureRows
from neardup.core.fingerprint.word_hashes import MIN_SHARED, HashRows, mix
from neardup.core.native import candidates as native
from neardup.core.native import in_c, make_record
from neardup.records import Language

BAND_BYTES = 2
LANGUAGE_SHIFT, NTH_SHIFT, VALUE_SHIFT = np.uint64(56), np.uint64(50), np.uint64(14)
NTH_MASK = np.uint64(0x3F)

Keys = npt.NDArray[np.uint64]  # language, number of the key, and 50 bits of a hash of its value
GroupEdges = npt.NDArray[np.int64]  # (languages, 10): how many groups there are, then the edges of these, in bands


class KeyTable(NamedTuple):
    """What the joins need to know of each language, by its number."""

    thresholds: Thresholds
    group_edges: GroupEdges
    max_matches: Indices  # (languages,)

    @classmethod
    def of(cls, thresholds: Mapping[Language, NominationThresholds]) -> "KeyTable":
        """The table of languages, numbered in the order of the mapping."""
        edges = np.zeros((len(thresholds), BANDS + 2), np.int64)
        for number, own in enumerate(thresholds.values()):
            parts = divide_bands(own.hamming)
            edges[number, : len(parts) + 2] = (len(parts), *(part.start for part in parts), BANDS)
        rows = [(own.hamming, own.bands, own.shared_bands, own.agreeing_rows) for own in thresholds.values()]
        max_matches = np.array([own.max_matches for own in thresholds.values()], np.int64)
        return cls(np.array(rows, np.int64), edges, max_matches)


class Buckets(NamedTuple):
    """Stories (n,) sorted by key and then by id, cut into buckets.

    Bucket b is the rows from edges[b] to edges[b + 1], and its stories share `keys[b]`.  If `splits[b]` is above 0, the
    first splits[b] rows are compared with the others only.  A language in `arrays` is a row of the `KeyTable`.  Works
    have negative ids.
    """

    edges: Indices
    keys: Keys
    splits: Indices
    ids: Indices
    arrays: Arrays


class BucketPairs(NamedTuple):
    """Pairs (m,) of rows of `Buckets`, left < right, of which `rows` of the signatures agree and `bits` differ.

    `left_out` (languages,) counts the pairs that exceed `max_matches` of the later story in its bucket.
    """

    left: Indices
    right: Indices
    rows: Indices
    bits: Indices
    left_out: Indices


class HashBuckets(NamedTuple):
    """Stories (n,) sorted by a passage hash and then by id, cut into buckets of the stories that hold it.

    Bucket b is the rows from edges[b] to edges[b + 1], of the hash hashes[b].  The shared hashes of row r are
    lists[ends[r]:ends[r + 1]], ascending.
    """

    edges: Indices
    hashes: Indices
    ids: Indices
    lists: Indices
    ends: Indices
    arrays: Arrays


class HashPairs(NamedTuple):
    """Pairs (m,) of rows of `HashBuckets`, left < right, and how many hashes they share."""

    left: Indices
    right: Indices
    shared: Indices


def make_keys(
    simhashes: HashRows, signatures: SignatureRows, signed: npt.NDArray[np.bool_], table: KeyTable, language: int
) -> tuple[Keys, Indices]:
    """The keys of n stories of a language, (m,) each with the index of its story."""
    hash_bytes = np.ascontiguousarray(simhashes).view(np.uint8).reshape(-1, BANDS * BAND_BYTES)
    count, bands = int(table.group_edges[language, 0]), int(table.thresholds[language, 1])
    edges = table.group_edges[language, 1 : count + 2].tolist()
    columns = [_hash_rows(hash_bytes[:, BAND_BYTES * start : BAND_BYTES * stop]) for start, stop in pairwise(edges)]
    columns += [_hash_rows(signatures[:, ROWS_A_BAND * band : ROWS_A_BAND * (band + 1)]) for band in range(bands)]
    nth = np.arange(count + bands, dtype=np.uint64)
    prefix = np.uint64(language) << LANGUAGE_SHIFT | nth << NTH_SHIFT
    keys = np.stack(columns, axis=1) >> VALUE_SHIFT | prefix
    wanted = np.ones(keys.shape, np.bool_)
    wanted[:, count:] = signed[:, None]
    return keys[wanted], np.nonzero(wanted)[0]


def _hash_rows(values: npt.NDArray[np.uint8]) -> Keys:
    """(n, up to 16) bytes -> (n,) a hash of each row."""
    padded = np.zeros((len(values), 2 * 8), np.uint8)
    padded[:, : values.shape[1]] = values
    words = padded.view(np.uint64)
    return np.asarray(mix(mix(words[:, 0]) + words[:, 1]))


@in_c(make_record(BucketPairs, native.rank_pairs))
def find_pairs_in_buckets(buckets: Buckets, table: KeyTable) -> BucketPairs:
    """The similar pairs whose key is that of the bucket, each later story with its best `max_matches` there.

    The best match agrees in the most rows, then has the smallest Hamming distance, then the lowest id.  Works are not
    paired.
    """
    arrays, found = buckets.arrays, [np.zeros((4, 0), np.int64)]
    languages, *_ = arrays
    left_out = np.zeros(len(table.max_matches), np.int64)
    for bucket, (start, stop) in enumerate(pairwise(buckets.edges.tolist())):
        number = int(buckets.keys[bucket] >> NTH_SHIFT & NTH_MASK)
        split = int(buckets.splits[bucket])
        for later in range(start + split, stop):
            if buckets.ids[later] < 0:
                continue
            language = int(languages[later])
            most = int(table.max_matches[language])
            left = np.arange(start, start + split if split else later)
            right = np.full(len(left), later)
            shared = _match_keys(left, later, arrays, table, language)
            is_alike, rows, bits = score_pairs.reference(arrays, arrays, left, right, table.thresholds)
            is_found = (
                is_alike
                & shared.any(axis=1)
                & (shared.argmax(axis=1) == number)
                & (buckets.ids[left] != buckets.ids[later])
            )
            matches = np.stack((left, right, rows, bits))[:, is_found]
            best_first = np.lexsort((matches[0], matches[3], -matches[2]))
            found.append(matches[:, best_first[:most]])
            left_out[language] += max(0, len(best_first) - most)
    left, right, rows, bits = np.concatenate(found, axis=1)
    return BucketPairs(left, right, rows, bits, left_out)


def _match_keys(stories: Indices, other: int, arrays: Arrays, table: KeyTable, language: int) -> Flags:
    """Whether each of some stories (n,) shares each key with another one of its language: (n, keys)."""
    _, simhashes, signatures, signed = arrays
    count, bands = int(table.group_edges[language, 0]), int(table.thresholds[language, 1])
    starts = table.group_edges[language, 1 : count + 1]
    same_bands = simhashes.view(np.uint16)[stories] == simhashes.view(np.uint16)[other]
    same_rows = (signatures[stories] == signatures[other]) & (signed[stories] & signed[other])[:, None]
    of_signature = same_rows[:, : ROWS_A_BAND * bands].reshape(len(stories), bands, ROWS_A_BAND).all(axis=2)
    return np.concatenate((np.logical_and.reduceat(same_bands, starts, axis=1), of_signature), axis=1)


@in_c(make_record(HashPairs, native.find_hash_sharing_pairs))
def find_pairs_in_hash_buckets(buckets: HashBuckets, thresholds: Thresholds, min_shared: int = MIN_SHARED) -> HashPairs:
    """The pairs that share `min_shared` hashes or more, the first of them that of the bucket.

    Works are not paired, nor are stories with similar fingerprints, which are paired already.
    """
    found = []
    lists = [buckets.lists[start:stop] for start, stop in pairwise(buckets.ends.tolist())]
    for bucket, (start, stop) in enumerate(pairwise(buckets.edges.tolist())):
        for later in range(start, stop):
            for earlier in range(start, later if buckets.ids[later] >= 0 else start):
                common = np.intersect1d(lists[earlier], lists[later], assume_unique=True)
                if len(common) >= max(min_shared, 1) and common[0] == buckets.hashes[bucket]:
                    found.append((earlier, later, len(common)))
    left, right, shared = np.array(found, np.int64).reshape(-1, 3).T
    is_alike, _, _ = score_pairs.reference(buckets.arrays, buckets.arrays, left, right, thresholds)
    return HashPairs(left[~is_alike], right[~is_alike], shared[~is_alike])
