"""Bands of the two fingerprints, and how many of them two stories must share.

A SimHash is cut into 8 bands of 16 bits, and the bands into groups.  Two hashes that differ in at most d bits differ in
at most d groups, so of d + 1 groups at least one is equal (Manku, Jain and Das Sarma, WWW 2007).  Looking up the
stories that share a group, for each of the d + 1 groups, finds every hash within distance d.  As 8 bands make at most
8 groups, d is at most 7.

By the same argument, of d + 2 blocks of bits at least two are equal.  A packed index (neardup.index.packed_buckets)
uses blocks: its buckets may be large, because unrelated stories seldom share two of them.

A signature is cut into bands of two adjacent rows (Indyk and Motwani, STOC 1998; Leskovec, Rajaraman and Ullman,
"Mining of Massive Datasets", chapter 3).  Two stories of Jaccard similarity J share each of up to 32 bands with
probability J^2, and candidates share at least `shared` of them.

Many fingerprints are numpy arrays, one array a field (`FingerprintArrays`).
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from neardup.core.fingerprint.minhash import ROWS, SignatureRows, stack_signatures
from neardup.core.fingerprint.word_hashes import HashRows, hash_rows, mix
from neardup.core.sets import find_distinct
from neardup.records import Language

BANDS = 8
MAX_DISTANCE = BANDS - 1
ROWS_A_BAND = 2
MAX_SIGNATURE_BANDS = ROWS // ROWS_A_BAND
MAX_BLOCKS = MAX_DISTANCE + 2
SHARED_BLOCKS = 2
HASH_BITS = 128
WORD_BITS = 64
COPY_KEY_BYTES = 4
BAND_BITS = 16
MULTIPLIER = np.uint16(40503)  # 2^16 / golden ratio (Knuth, volume 3, section 6.4)


Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.uint32]  # the ledger's story numbers
Values = npt.NDArray[np.uint16]  # of bands or blocks

ARRAYS = ("numbers", "ids", "languages", "simhashes", "signatures", "signed")


class Banding(Struct, frozen=True):
    """How the fingerprints of a language are banded and looked up.

    A lookup finds every story within the Hamming distance `hamming`, and those that share at least `shared` of the
    first `bands` bands of the signature.  Buckets of more than `max_bucket` members are reported.
    """

    hamming: int = 3
    bands: int = MAX_SIGNATURE_BANDS
    shared: int = 2
    max_bucket: int = 5000


@cache
def divide_bands(distance: int) -> tuple[range, ...]:
    """The bands 0 to 7 divided into distance + 1 groups of nearly equal size: four pairs for distance 3.

    Raises ValueError for a distance that 8 bands cannot guarantee.
    """
    if not 0 <= distance <= MAX_DISTANCE:
        raise ValueError(
            f"{BANDS} bands find every pair of Hamming distance 0 to {MAX_DISTANCE}, not {distance}: "
            "a whole band must stay untouched, so the bits that differ must be fewer than the bands"
        )
    n = distance + 1
    edges = [i * BANDS // n for i in range(n + 1)]
    return tuple(range(a, b) for a, b in pairwise(edges))


def cut_band_values(simhash: bytes) -> list[str]:
    """16 bytes -> the 8 band values, 4 upper-case hexadecimal digits each."""
    digits = simhash.hex().upper()
    return [digits[i : i + 4] for i in range(0, 4 * BANDS, 4)]


def hash_blocks(simhashes: npt.NDArray[np.uint64], distance: int, bits: int) -> Values:
    """The blocks of (n, 2) SimHashes, each hashed to `bits` bits, at most 16: (n, distance + 2).

    Two hashes within the distance share at least SHARED_BLOCKS blocks.  In prose the bits of a SimHash are biased: some
    16 of them are equal in one story of a hundred.  Hashing all the bits of a block makes the buckets even.
    """
    words = simhashes.view(">u8").astype(np.uint64)
    count = distance + SHARED_BLOCKS
    edges = [n * HASH_BITS // count for n in range(count + 1)]
    blocks = [_cut_bits(words, start, stop) for start, stop in pairwise(edges)]
    return (mix(np.stack(blocks, axis=1)) >> np.uint64(WORD_BITS - bits)).astype(np.uint16)


def _cut_bits(words: npt.NDArray[np.uint64], start: int, stop: int) -> npt.NDArray[np.uint64]:
    """Bits start to stop, at most 64 of them, of (n, 2) words; bit 0 is the most significant: (n,)."""
    if stop <= WORD_BITS:
        bits = words[:, 0] >> np.uint64(WORD_BITS - stop)
    elif start >= WORD_BITS:
        bits = words[:, 1] >> np.uint64(HASH_BITS - stop)
    else:
        bits = words[:, 0] << np.uint64(stop - WORD_BITS) | words[:, 1] >> np.uint64(HASH_BITS - stop)
    return np.asarray(bits & np.uint64((1 << stop - start) - 1))


def hash_bands(signatures: SignatureRows, bands: int, bits: int) -> Values:
    """The first bands of (n, 64) signatures, each hashed to `bits` bits, at most 16: (n, bands).

    With 16 bits a band is left as it is.  With fewer it is hashed, not cut, because values next to a frequent value
    would fall into its bucket, which is among the fullest already.
    """
    values = np.ascontiguousarray(signatures[:, : bands * ROWS_A_BAND]).view(">u2").astype(np.uint16)
    return values if bits == BAND_BITS else values * MULTIPLIER >> np.uint16(BAND_BITS - bits)


def copy_keys(simhashes: Iterable[bytes], signatures: Iterable[bytes | None]) -> Numbers:
    """The first four rows of n signatures, or the beginning of the SimHash where there is none: (n,).

    Copies of one story have few different keys: those of Jaccard similarity J have the same with probability J^4.
    """
    starts = (
        (simhash if signature is None else signature)[:COPY_KEY_BYTES]
        for simhash, signature in zip(simhashes, signatures, strict=True)
    )
    return np.frombuffer(b"".join(starts), "<u4").astype(np.uint32)


class FingerprintArrays(Struct, frozen=True):
    """The fingerprints of n stories; each array has n rows.

    `numbers` are the ledger's story numbers, `languages` its numbers of languages, which `names` maps to languages,
    `simhashes` (n, 2) and `signatures` (n, 64).  `signed` marks the stories that have a signature; the others have a
    row of zeros.
    """

    numbers: Numbers
    ids: npt.NDArray[np.int64]
    languages: npt.NDArray[np.uint8]
    simhashes: HashRows
    signatures: SignatureRows
    signed: npt.NDArray[np.bool_]
    names: Mapping[int, Language]

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, bytes, bytes | None]], names: Mapping[int, Language]) -> Self:
        """Arrays of rows of number, id, language's number, SimHash (16 bytes) and signature (64 bytes, or None)."""
        numbers, ids, languages, simhashes, signatures = tuple(zip(*rows, strict=True)) or ((),) * 5
        return cls(
            np.array(numbers, np.uint32),
            np.array(ids, np.int64),
            np.array(languages, np.uint8),
            hash_rows(simhashes).copy(),
            stack_signatures(signatures).copy(),
            np.array([signature is not None for signature in signatures], np.bool_),
            names,
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, kept: npt.NDArray[np.bool_]) -> Self:
        """The stories for which `kept` (n,) is true."""
        return replace(self, **{name: getattr(self, name)[kept] for name in ARRAYS})

    def by_language(self) -> Iterator[tuple[Language, Self]]:
        """Each language that occurs, with its stories."""
        for number in find_distinct(self.languages).tolist():
            yield self.names[number], self.where(self.languages == number)
