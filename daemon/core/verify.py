"""The exact arithmetic that decides whether a nominated pair is a copy.

Jaccard similarity and containment are Broder's resemblance and containment (SEQUENCES 1997), of the
sets of word pairs of the two texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from daemon.core.minhash import agreeing, estimated_jaccard, shingles, signature_rows
from daemon.core.words import Hashes, hashed, mixed
from daemon.records import Candidate, Kind, Scores, Verdict

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
    common = len(np.intersect1d(a.shingles, b.shingles, assume_unique=True))
    return Scores(
        jaccard=common / (len(a.shingles) + len(b.shingles) - common),
        containment_a=common / len(a.shingles),
        containment_b=common / len(b.shingles),
        longest_run_words=longest_run(a.words, b.words),
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


def judge(pair: Candidate, a: Shingled | None, b: Shingled | None, limits: Limits) -> Verdict | None:
    """What a pair is, by its texts, or by its signatures where either text is gone.

    None for a pair with too little in common to be worth keeping.
    """
    [bits] = hamming(hash_rows([pair.a.simhash]), hash_rows([pair.b.simhash])).tolist()
    if pair.a.text_hash == pair.b.text_hash:
        return Verdict(Kind.EXACT, bits, Scores(1.0, 1.0, 1.0, pair.a.words))
    scores = compare(a, b) if a and b else estimate(pair)
    kind = kind_of(bits, scores, limits)
    if kind is None and (scores is None or best(scores) < NEAR_MISS):
        return None
    return Verdict(kind, bits, scores)


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


def longest_run(a: Hashes, b: Hashes) -> int:
    """Words of the longest run that stands in both texts.

    A run of n words holds runs of every lesser length, so its length is found by bisection.  The
    hashes of all runs of 2^k words come from those of 2^(k-1) (Karp, Miller and Rosenberg, STOC 1972).
    """
    ladder = [(a, b)] if _meet(a, b) else []
    while ladder and min(map(len, ladder[-1])) > (step := 1 << len(ladder) - 1):
        longer = _joined(ladder[-1][0], ladder[-1][0], step), _joined(ladder[-1][1], ladder[-1][1], step)
        if not _meet(*longer):
            break
        ladder.append(longer)
    if not ladder:
        return 0
    best, run = 1 << len(ladder) - 1, ladder[-1]
    for power in reversed(range(len(ladder) - 1)):
        longer = _joined(run[0], ladder[power][0], best), _joined(run[1], ladder[power][1], best)
        if _meet(*longer):
            best, run = best + (1 << power), longer
    return best


def _joined(head: Hashes, tail: Hashes, step: int) -> Hashes:
    """The hashes of the runs that begin with one of `head` and go on, `step` words later, with one of `tail`."""
    n = max(len(tail) - step, 0)
    return mixed(head[:n]) + tail[step:]


def _meet(a: Hashes, b: Hashes) -> bool:
    """Whether a hash of one stands among the other's."""
    if not len(a) or not len(b):
        return False
    ascending = np.sort(a)
    places = np.searchsorted(ascending, b)
    return bool((ascending[np.minimum(places, len(a) - 1)] == b).any())
