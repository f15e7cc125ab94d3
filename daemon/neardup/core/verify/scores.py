"""The exact arithmetic that decides whether a nominated pair is a copy.

Jaccard similarity and containment are Broder's resemblance and containment (SEQUENCES 1997), of the
sets of word pairs of the two texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.minhash import agreeing, estimated_jaccard, shingles, signature_rows
from neardup.core.fingerprint.word_hashes import Hashes, hashed
from neardup.core.verify.longest_run import longest_run
from neardup.records import Candidate, Finding, Kind, Scores

NEAR_MISS = 0.3  # pairs that share so much are kept, so that other thresholds can be replayed

HashRows = npt.NDArray[np.uint64]  # (n, 2): SimHashes as two words each


class Limits(Protocol):
    """What makes a pair a copy."""

    @property
    def hamming(self) -> int: ...
    @property
    def jaccard(self) -> float: ...
    @property
    def containment(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Shingled:
    """A text to compare: the hashes of its words in order, and of its distinct shingles, ascending."""

    words: Hashes
    shingles: Hashes


def shingled(words: Sequence[bytes]) -> Shingled:
    """Normalised UTF-8 words -> what they are compared by."""
    numbers = hashed(words)
    return Shingled(numbers.hashes, shingles(numbers))


def hash_rows(simhashes: Sequence[bytes]) -> HashRows:
    """N SimHashes of 16 bytes -> (n, 2) uint64."""
    return np.frombuffer(b"".join(simhashes), np.uint64).reshape(-1, 2)


def hamming(left: HashRows, right: HashRows) -> npt.NDArray[np.int64]:
    """Bits that differ, row by row; shapes broadcast over all but the last axis."""
    differing: npt.NDArray[np.uint8] = np.bitwise_count(left ^ right)
    return np.asarray(differing.sum(axis=-1, dtype=np.int64))


def compare(a: Shingled, b: Shingled) -> Scores:
    """Two texts -> what they have in common, exactly."""
    return replace(_overlap(a, b), longest_run_words=longest_run(a.words, b.words))


def _overlap(a: Shingled, b: Shingled) -> Scores:
    common = len(np.intersect1d(a.shingles, b.shingles, assume_unique=True))
    return Scores(
        jaccard=common / (len(a.shingles) + len(b.shingles) - common),
        containment_a=common / len(a.shingles),
        containment_b=common / len(b.shingles),
        longest_run_words=None,
    )


def estimate(pair: Candidate) -> Scores | None:
    """What the signatures of two stories speak for, where a text is gone; None where either has none."""
    if pair.a.signature is None or pair.b.signature is None:
        return None
    rows = agreeing(signature_rows([pair.a.signature]), signature_rows([pair.b.signature]))[0]
    jaccard = estimated_jaccard(int(rows))
    common = jaccard / (1 + jaccard) * (pair.a.shingles + pair.b.shingles)
    return Scores(
        jaccard=jaccard,
        containment_a=min(1.0, common / pair.a.shingles),
        containment_b=min(1.0, common / pair.b.shingles),
        longest_run_words=None,
        estimated=True,
    )


def judge(pair: Candidate, a: Shingled | None, b: Shingled | None, limits: Limits) -> Finding | None:
    """What a pair is, by its texts, or by its signatures where either text is gone.

    None for a pair with too little in common to be worth keeping.
    """
    [bits] = hamming(hash_rows([pair.a.simhash]), hash_rows([pair.b.simhash])).tolist()
    if pair.a.text_hash == pair.b.text_hash:
        return Finding(Kind.EXACT, bits, Scores(1.0, 1.0, 1.0, pair.a.words))
    scores = _overlap(a, b) if a and b else estimate(pair)
    kind = kind_of(bits, scores, limits)
    if kind is None and (scores is None or best(scores) < NEAR_MISS):
        return None
    if scores and a and b:
        scores = replace(scores, longest_run_words=longest_run(a.words, b.words))
    return Finding(kind, bits, scores)


def kind_of(bits: int, scores: Scores | None, limits: Limits) -> Kind | None:
    """The first kind that holds for a pair of different texts, or None."""
    if bits <= limits.hamming:
        return Kind.NEAR
    if scores is None:
        return None
    if scores.jaccard >= limits.jaccard:
        return Kind.SIMILAR
    return Kind.PARTIAL if best(scores) >= limits.containment else None


def best(scores: Scores) -> float:
    """The largest of a pair's scores; no Jaccard similarity is larger than the containments."""
    return max(scores.containment_a, scores.containment_b)
