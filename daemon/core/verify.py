"""The exact arithmetic that decides whether a nominated pair is a copy."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from daemon.records import Candidate, Flag, Kind

HashRows = npt.NDArray[np.uint64]  # (n, 2): SimHashes as two words each


def hash_rows(simhashes: Sequence[bytes]) -> HashRows:
    """N SimHashes of 16 bytes -> (n, 2) uint64."""
    return np.frombuffer(b"".join(simhashes), np.uint64).reshape(-1, 2)


def hamming(left: HashRows, right: HashRows) -> npt.NDArray[np.int64]:
    """Bits that differ, row by row; shapes broadcast over all but the last axis."""
    differing: npt.NDArray[np.uint8] = np.bitwise_count(left ^ right)
    return np.asarray(differing.sum(axis=-1, dtype=np.int64))


def judge(pair: Candidate, max_hamming: int) -> Flag | None:
    """The first kind that holds for the pair, or None."""
    bits = int(hamming(hash_rows([pair.simhash_a]), hash_rows([pair.simhash_b]))[0])
    if pair.text_hash_a == pair.text_hash_b:
        return Flag(pair.a, pair.b, Kind.EXACT, bits, 1.0, 1.0, 1.0, pair.words)
    if bits <= max_hamming:
        return Flag(pair.a, pair.b, Kind.NEAR, bits)
    return None
