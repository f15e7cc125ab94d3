"""Hashes of a story's words, from which every fingerprint is computed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

DIGEST_BYTES = 16

Hashes = npt.NDArray[np.uint64]
Hash = TypeVar("Hash", Hashes, np.uint64)


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a story, each hashed once.

    `digests` (distinct, 16) uint8 are the xxh3-128 of the distinct words; `order` (words,) has, for each
    word of the text, its index in `digests`.
    """

    digests: npt.NDArray[np.uint8]
    order: npt.NDArray[np.intp]

    @property
    def hashes(self) -> Hashes:
        """(words,) uint64: the first half of each word's digest, in the order of the text."""
        return np.ascontiguousarray(self.digests[:, :8]).view("<u8").ravel().astype(np.uint64, copy=False)[self.order]


def hashed(words: Sequence[bytes]) -> Words:
    """Normalised UTF-8 words, in reading order -> their hashes."""
    index_of = {word: n for n, word in enumerate(dict.fromkeys(words))}
    digests = np.frombuffer(b"".join(map(xxhash.xxh3_128_digest, index_of)), np.uint8).reshape(-1, DIGEST_BYTES)
    return Words(digests, np.fromiter(map(index_of.__getitem__, words), np.intp, len(words)))


def mixed(x: Hash) -> Hash:
    """The finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014), elementwise for an array."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
