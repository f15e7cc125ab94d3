"""The exact arithmetic on a nominated pair, by which its tier is decided.

Jaccard similarity and containment are Broder's resemblance and containment (SEQUENCES 1997), of the
sets of word pairs of the two texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.minhash import agreeing, estimated_jaccard, shingles, signature_rows
from neardup.core.fingerprint.word_hashes import Hashes, hashed
from neardup.core.verify.longest_run import longest_run
from neardup.core.verify.tiers import Thresholds, kind_of
from neardup.records import Assessment, Candidate, Signals

NEAR_MISS = 0.3  # pairs with this containment are recorded, so that lower thresholds can be tried out on them

HashRows = npt.NDArray[np.uint64]  # (n, 2): SimHashes as two words each


@dataclass(frozen=True, slots=True)
class Shingled:
    """A text to compare: the hashes of its words in order, and those of its distinct shingles, ascending."""

    words: Hashes
    shingles: Hashes


def shingled(words: Sequence[bytes]) -> Shingled:
    """Normalised UTF-8 words -> the hashes by which texts are compared."""
    numbers = hashed(words)
    return Shingled(numbers.hashes, shingles(numbers))


def hash_rows(simhashes: Sequence[bytes]) -> HashRows:
    """N SimHashes of 16 bytes -> (n, 2) uint64."""
    return np.frombuffer(b"".join(simhashes), np.uint64).reshape(-1, 2)


def hamming(left: HashRows, right: HashRows) -> npt.NDArray[np.int64]:
    """The Hamming distance, row by row; shapes broadcast over all but the last axis."""
    differing: npt.NDArray[np.uint8] = np.bitwise_count(left ^ right)
    return np.asarray(differing.sum(axis=-1, dtype=np.int64))


def measure(a: Shingled, b: Shingled, bits: int) -> Signals:
    """The exact signals of two texts whose SimHashes differ in `bits` bits."""
    return replace(_overlap(a, b, bits), longest_run_words=longest_run(a.words, b.words))


def _overlap(a: Shingled, b: Shingled, bits: int) -> Signals:
    common = len(np.intersect1d(a.shingles, b.shingles, assume_unique=True))
    return Signals(
        bits,
        jaccard=common / (len(a.shingles) + len(b.shingles) - common),
        containment_a=common / len(a.shingles),
        containment_b=common / len(b.shingles),
    )


def estimate(pair: Candidate, bits: int) -> Signals:
    """The signals that two signatures give, for a pair of which a text is missing; `bits` alone without signatures."""
    if pair.a.signature is None or pair.b.signature is None:
        return Signals(bits)
    rows = agreeing(signature_rows([pair.a.signature]), signature_rows([pair.b.signature]))[0]
    jaccard = estimated_jaccard(int(rows))
    common = jaccard / (1 + jaccard) * (pair.a.shingles + pair.b.shingles)
    return Signals(
        bits,
        jaccard=jaccard,
        containment_a=min(1.0, common / pair.a.shingles),
        containment_b=min(1.0, common / pair.b.shingles),
        estimated=True,
    )


def assess(pair: Candidate, a: Shingled | None, b: Shingled | None, thresholds: Thresholds) -> Assessment | None:
    """Verify a pair by its texts, or by its signatures where either text is missing.

    None for a pair with too little in common to be recorded.
    """
    [bits] = hamming(hash_rows([pair.a.simhash]), hash_rows([pair.b.simhash])).tolist()
    if pair.a.text_hash == pair.b.text_hash:
        signals = Signals(bits, True, 1.0, 1.0, 1.0, pair.a.words)
        return Assessment(kind_of(signals, thresholds), signals)
    signals = _overlap(a, b, bits) if a and b else estimate(pair, bits)
    kind = kind_of(signals, thresholds)
    if kind is None and signals.containment < NEAR_MISS:
        return None
    if a and b:  # by far the most expensive signal, so only for pairs that are recorded
        signals = replace(signals, longest_run_words=longest_run(a.words, b.words))
    return Assessment(kind, signals)
