"""Pairs of similar fingerprints by the keys that they share, each pair at one key.

A story has a key for each group of its SimHash's bands, and one for each band of its signature.  A bucket is the
stories that share a key.  From the two fingerprints alone follows the key at which a pair is compared: the first of its
shared keys whose bucket is light, or the first of all where every bucket is heavy.  So buckets can be joined anywhere,
in any order, and no found pair need be remembered: no distinct over all pairs is needed.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BANDS, ROWS_A_BAND, groups
from neardup.core.candidates.screen import Arrays, Thresholds, hamming_distance, score_pair
from neardup.core.candidates.select import NominationThresholds
from neardup.core.fingerprint.minhash import ROWS, SignatureRows
from neardup.core.fingerprint.word_hashes import mixed
from neardup.core.jit import compiled
from neardup.core.verify.scores import HashRows
from neardup.records import Language

BAND_BYTES = 2
LANGUAGE_SHIFT, NTH_SHIFT, VALUE_SHIFT = np.uint64(56), np.uint64(50), np.uint64(14)
NTH_MASK = np.uint64(0x3F)
BAND_BITS, BANDS_A_WORD, BAND_MASK = 16, 4, np.uint64(0xFFFF)
LOWEST_BITS, HIGHEST_BITS = np.uint64(0x0001000100010001), np.uint64(0x8000800080008000)  # of the bands of a word
BITS_SHIFT, ROWS_SHIFT = 32, 40  # of a match's rank: the rows that differ, the bits that differ, its place

Keys = npt.NDArray[np.uint64]  # language, number of the key, and 50 bits of a hash of its value
HeavyKeys = npt.NDArray[np.uint64]  # (n,): bit k is set if the bucket of the story's key k is heavy
Indices = npt.NDArray[np.int64]
GroupEdges = npt.NDArray[np.int64]  # (languages, 10): how many groups there are, then the edges of these, in bands
Limits = npt.NDArray[np.int64]  # (languages, 2): max_matches, max_bucket


class KeyThresholds(NominationThresholds, Protocol):
    """The thresholds and the caps of a language by which pairs are nominated."""

    @property
    def max_bucket(self) -> int: ...


class KeyTable(NamedTuple):
    """What the kernels need to know of each language, by its number."""

    thresholds: Thresholds
    group_edges: GroupEdges
    limits: Limits

    @classmethod
    def of(cls, thresholds: Mapping[Language, KeyThresholds]) -> "KeyTable":
        """The table of languages, numbered in the order of the mapping."""
        edges = np.zeros((len(thresholds), BANDS + 2), np.int64)
        for number, own in enumerate(thresholds.values()):
            parts = groups(own.hamming)
            edges[number, : len(parts) + 2] = (len(parts), *(part.start for part in parts), BANDS)
        rows = [(own.hamming, own.bands, own.shared_bands, own.agreeing_rows) for own in thresholds.values()]
        limits = [(own.max_matches, own.max_bucket) for own in thresholds.values()]
        return cls(np.array(rows, np.int64), edges, np.array(limits, np.int64))


class Buckets(NamedTuple):
    """Stories (n,) sorted by key and then by id, cut into buckets.

    Bucket b is the rows from edges[b] to edges[b + 1], and its stories share `keys[b]`.  `compared[b]` of them were
    compared with those before them already.  A language in `arrays` is a row of the `KeyTable`.
    """

    edges: Indices
    keys: Keys
    compared: Indices
    ids: Indices
    heavy: HeavyKeys
    arrays: Arrays


class BucketPairs(NamedTuple):
    """Pairs (m,) of rows, left < right, with the rows that agree and the bits that differ.

    `left_out` (languages,) counts the pairs that exceed `max_matches` of the later story in its bucket.
    """

    left: Indices
    right: Indices
    rows: Indices
    bits: Indices
    left_out: Indices


def keys_of(
    simhashes: HashRows, signatures: SignatureRows, signed: npt.NDArray[np.bool_], table: KeyTable, language: int
) -> tuple[Keys, Indices]:
    """The keys of n stories of a language, (m,) each with the index of its story."""
    hash_bytes = np.ascontiguousarray(simhashes).view(np.uint8).reshape(-1, BANDS * BAND_BYTES)
    count, bands = int(table.group_edges[language, 0]), int(table.thresholds[language, 1])
    edges = table.group_edges[language, 1 : count + 2].tolist()
    columns = [_hashed(hash_bytes[:, BAND_BYTES * start : BAND_BYTES * stop]) for start, stop in pairwise(edges)]
    columns += [_hashed(signatures[:, ROWS_A_BAND * band : ROWS_A_BAND * (band + 1)]) for band in range(bands)]
    nth = np.arange(count + bands, dtype=np.uint64)
    prefix = np.uint64(language) << LANGUAGE_SHIFT | nth << NTH_SHIFT
    keys = np.stack(columns, axis=1) >> VALUE_SHIFT | prefix
    wanted = np.ones(keys.shape, np.bool_)
    wanted[:, count:] = signed[:, None]
    return keys[wanted], np.nonzero(wanted)[0]


def _hashed(values: npt.NDArray[np.uint8]) -> Keys:
    """(n, up to 16) bytes -> (n,) a hash of each row."""
    padded = np.zeros((len(values), 2 * 8), np.uint8)
    padded[:, : values.shape[1]] = values
    words = padded.view(np.uint64)
    return np.asarray(mixed(mixed(words[:, 0]) + words[:, 1]))


def numbers_of_keys(keys: Keys) -> Indices:
    """(n,) keys -> the number of each among the keys of its story."""
    return (keys >> NTH_SHIFT & NTH_MASK).astype(np.int64)


def languages_of_keys(keys: Keys) -> Indices:
    """(n,) keys -> the number of each one's language."""
    return (keys >> LANGUAGE_SHIFT).astype(np.int64)


@compiled
def _shared_keys(one: int, other: int, arrays: Arrays, edges: GroupEdges, bands: int) -> int:
    """The keys that two stories of a language share: bit k for key k; `edges` (10,) are those of the language.

    Finds equal 16-bit parts of words as zeros of their difference (Warren, "Hacker's Delight", section 6-1): nearly
    always there is none, and the parts need not be looked at.
    """
    _, simhashes, _, signed, words = arrays
    shared = 0
    for key in range(edges[0]):
        same = True
        for band in range(edges[key + 1], edges[key + 2]):
            difference = simhashes[one, band // BANDS_A_WORD] ^ simhashes[other, band // BANDS_A_WORD]
            same &= difference >> np.uint64(BAND_BITS * (band % BANDS_A_WORD)) & BAND_MASK == 0
        shared |= int(same) << key
    if not signed[one] or not signed[other]:
        return shared
    for word in range((bands + BANDS_A_WORD - 1) // BANDS_A_WORD):
        difference = words[one, word] ^ words[other, word]
        if (difference - LOWEST_BITS) & ~difference & HIGHEST_BITS == 0:
            continue
        for band in range(BANDS_A_WORD * word, min(BANDS_A_WORD * (word + 1), bands)):
            same = difference & BAND_MASK == 0
            shared |= int(same) << (edges[0] + band)
            difference >>= np.uint64(BAND_BITS)
    return shared


@compiled
def _count_bits(mask: int) -> int:
    count = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@compiled
def pairs_in_buckets(buckets: Buckets, table: KeyTable) -> BucketPairs:
    """The similar pairs whose key is that of the bucket, each later story with its best `max_matches` there.

    In a bucket of more than `max_bucket` stories each is compared with the first `max_bucket` only.  The best match
    agrees in the most rows, then has the smallest Hamming distance, then the lowest id.  Works are not paired.
    """
    left, right, count = np.empty(64, np.int64), np.empty(64, np.int64), 0
    rows, bits = np.empty(64, np.int64), np.empty(64, np.int64)
    left_out = np.zeros(len(table.limits), np.int64)
    languages, ids = buckets.arrays[0], buckets.ids
    ranks = np.empty(64, np.int64)
    for bucket in range(len(buckets.edges) - 1):
        start, stop = buckets.edges[bucket], buckets.edges[bucket + 1]
        most = table.limits[languages[start], 0]
        for other in range(start + buckets.compared[bucket], stop):
            if ids[other] < 0:
                continue
            found, ranks = _ranked(bucket, other, ranks, buckets, table)
            if found > most:
                left_out[languages[other]] += found - most
                found = most
            while count + found > len(left):
                left, right = np.append(left, left), np.append(right, right)
                rows, bits = np.append(rows, rows), np.append(bits, bits)
            for n in range(found):
                rank = ranks[n]
                left[count], right[count] = start + (rank & 0xFFFFFFFF), other
                rows[count], bits[count] = ROWS - (rank >> ROWS_SHIFT), rank >> BITS_SHIFT & 0xFF
                count += 1
    return BucketPairs(left[:count], right[:count], rows[:count], bits[:count], left_out)


@compiled
def _ranked(bucket: int, other: int, ranks: Indices, buckets: Buckets, table: KeyTable) -> tuple[int, Indices]:
    """How many rows of a bucket before the row `other` match it there, and the ranks of the best, best first.

    `ranks` is room for these.  It holds twice `max_matches` before the worse half is dropped, so a story in a bucket
    of copies costs no more than the comparisons.
    """
    start, ids = buckets.edges[bucket], buckets.ids
    language = buckets.arrays[0][other]
    most, max_bucket = table.limits[language]
    edges, (hamming, bands, shared_bands, _) = table.group_edges[language], table.thresholds[language]
    heavy, here = int(buckets.heavy[other]), 1 << int(buckets.keys[bucket] >> NTH_SHIFT & NTH_MASK)
    found, held, worst = 0, 0, np.iinfo(np.int64).max
    for one in range(start, min(other, start + max_bucket)):
        shared = _shared_keys(one, other, buckets.arrays, edges, bands)
        compared_at = shared & ~heavy or shared
        if ids[one] == ids[other] or compared_at & -compared_at != here:
            continue
        if _count_bits(shared >> edges[0]) < shared_bands and hamming_distance(one, other, buckets.arrays) > hamming:
            continue  # nearly all pairs, which need no more steps
        alike, agreeing, differing = score_pair(one, other, buckets.arrays, buckets.arrays, table.thresholds)
        if not alike:
            continue
        found += 1
        rank = (ROWS - agreeing) << ROWS_SHIFT | differing << BITS_SHIFT | (one - start)
        if rank > worst:
            continue
        if held == len(ranks):
            ranks = np.append(ranks, ranks)
        ranks[held] = rank
        held += 1
        if held == 2 * most:
            ranks[:held].sort()
            held, worst = most, ranks[most - 1]
    if found > most:
        ranks[:held].sort()
    return found, ranks
