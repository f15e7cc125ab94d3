"""All candidate pairs among the fingerprints of one language, without a lookup for each story.

For each key, a band or two, stories are sorted by the key's first band, and the members of each run of equal values
are joined into pairs (see neardup.core.candidates.bucket_join).  These are the sorted tables of Manku, Jain and
Das Sarma (WWW 2007), made one at a time.

A few stories are compared with all others without buckets, and without the limits of nomination (`compare`).
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field
from msgspec.structs import replace

from neardup.core.candidates.banding import BANDS, FingerprintArrays, Indices, divide_bands
from neardup.core.candidates.bucket_join import BandValues, JoinRules, Keys, Positions, Runs, Stories, join_runs
from neardup.core.candidates.select import Arrays, make_columns
from neardup.core.fingerprint.minhash import SignatureRows
from neardup.core.fingerprint.word_hashes import HashRows, measure_hamming
from neardup.core.native import candidates as native
from neardup.core.native import in_c

HASH_BYTES = 16
BAND_BYTES = HASH_BYTES // BANDS
MAX_KEY_BANDS = 2
CHUNK_PAIRS = 1 << 18  # the most in a chunk, unless more stories share a band
NO_POSITIONS = np.empty(0, np.int64)

LEAST_ROWS = 6  # that the signatures of a pair agree in; those of unrelated stories do once in 4 million pairs


class PairChunk(Struct, frozen=True):
    """Some of the pairs, as positions (m,) of stories, left < right.

    `done` is the share of the keys that are done, 0 to 1.
    """

    left: Positions = field(default_factory=lambda: NO_POSITIONS)
    right: Positions = field(default_factory=lambda: NO_POSITIONS)
    done: float = 0.0

    def where(self, kept: npt.NDArray[np.bool_]) -> "PairChunk":
        """The same chunk with only the pairs for which `kept` (m,) is true."""
        return replace(self, left=self.left[kept], right=self.right[kept])


def find_near_pairs(simhashes: HashRows, distance: int) -> Iterator[PairChunk]:
    """Every pair of (n, 2) SimHashes within the Hamming distance, 0 to 7, once.

    A key is a group of bands.  Raises ValueError as `divide_bands` does.
    """
    simhash_bytes = np.ascontiguousarray(simhashes).view(np.uint8)
    spans = [
        slice(BAND_BYTES * group.start, BAND_BYTES * group[:MAX_KEY_BANDS].stop) for group in divide_bands(distance)
    ]
    band_values = np.empty((len(simhash_bytes), len(spans)), np.uint32)
    for n, span in enumerate(spans):
        band_values[:, n] = np.ascontiguousarray(simhash_bytes[:, span]).view(f"u{span.stop - span.start}")[:, 0]
    # Hashes that differ in d bits differ in at most d bytes; comparing bytes first saves counting most pairs' bits.
    rules = JoinRules(min_bands=1, min_bytes=HASH_BYTES - distance)
    positions = np.arange(len(simhash_bytes))
    for chunk in _join_keys(Stories(band_values, simhash_bytes), positions, rules):
        bits = measure_hamming(simhashes.take(chunk.left, axis=0), simhashes.take(chunk.right, axis=0))
        yield chunk.where(bits <= distance)


def find_signature_pairs(
    signatures: SignatureRows, signed: Positions, *, bands: int, shared: int, agreeing_rows: int
) -> Iterator[PairChunk]:
    """Every pair of (n, 64) signatures that shares enough bands and agrees in enough rows, once.

    A pair must share at least `shared` of the first `bands` bands, and agree in at least `agreeing_rows` rows.
    `signed` are the positions of the stories that have a signature, ascending.  A key is two bands, or one band if
    `shared` is 1.
    """
    rows = np.ascontiguousarray(signatures)
    band_values = np.ascontiguousarray(rows.view(np.uint16)[:, :bands])
    yield from _join_keys(Stories(band_values, rows), signed, JoinRules(shared, agreeing_rows))


def _join_keys(stories: Stories, positions: Positions, rules: JoinRules) -> Iterator[PairChunk]:
    """The pairs of all keys among the stories at `positions`."""
    band_values, key_bands = stories.band_values, min(rules.min_bands, MAX_KEY_BANDS)
    order = positions
    for band in reversed(range(key_bands)):
        order = _sort_by(order, band_values[:, band])
    bands = band_values.shape[1]
    all_keys = [Keys(n, n + key_bands - 1, bands if key_bands > 1 else n + 1, rules) for n in range(bands)]
    total, done = sum(keys.stop - keys.start for keys in all_keys), 0
    for keys in all_keys:
        if keys.start == keys.stop:
            continue
        first_values = band_values[:, keys.first_band]
        runs = _group_runs(_sort_by(order, first_values), first_values)
        for left, right, done_here in join_runs(stories, runs, keys, CHUNK_PAIRS):
            yield PairChunk(left, right, done=(done + (keys.stop - keys.start) * done_here) / total)
        done += keys.stop - keys.start
    yield PairChunk(done=1.0)


def _sort_by(order: Positions, values: BandValues) -> Positions:
    """Positions in ascending order of their values (n,), stable: a radix sort, 16 bits at a time."""
    for shift in range(0, 8 * values.itemsize, 16):
        digits = (values >> shift).astype(np.uint16)
        order = order[np.argsort(digits[order], kind="stable")]
    return order


def _group_runs(members: Positions, values: BandValues) -> Runs:
    """Group sorted positions into runs of equal values."""
    member_values = values[members]
    changes = np.ones(len(member_values) + 1, np.bool_)
    np.not_equal(member_values[1:], member_values[:-1], out=changes[1:-1])
    return Runs(members, np.flatnonzero(changes))


class Alike(NamedTuple):
    """Pairs of a story and one of the others: the positions of both, and the signature rows in which they agree."""

    stories: Indices
    others: Indices
    rows: Indices


def compare(stories: FingerprintArrays, others: FingerprintArrays, most_bits: int) -> Alike:
    """The pairs within the Hamming distance `most_bits`, or whose signatures agree in LEAST_ROWS rows.

    All stories are of one language.
    """
    return Alike(*close_pairs(make_columns(stories), make_columns(others), most_bits, LEAST_ROWS))


@in_c(native.close_pairs)
def close_pairs(stories: Arrays, others: Arrays, most_bits: int, least_rows: int) -> tuple[Indices, Indices, Indices]:
    """The pairs of `compare` in the order of the others: positions of stories, of others, and the rows that agree."""
    _, simhashes, signatures, signed = stories
    found = [np.zeros((3, 0), np.int64)]
    for nth, (_, simhash, signature, is_signed) in enumerate(zip(*others, strict=True)):
        rows = (signatures == signature).sum(axis=1) * (signed & is_signed)
        near = np.flatnonzero((rows >= least_rows) | (measure_hamming(simhashes, simhash) <= most_bits))
        found.append(np.stack((near, np.full(len(near), nth), rows[near])))
    left, right, rows = np.concatenate(found, axis=1)
    return left, right, rows
