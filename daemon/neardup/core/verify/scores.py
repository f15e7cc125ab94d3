"""The exact arithmetic on a nominated pair, by which its tier is decided.

Jaccard similarity and containment are Broder's resemblance and containment (SEQUENCES 1997), of the
sets of word pairs of the two texts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.minhash import agreeing, estimated_jaccard, shingles, signature_rows
from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.core.fingerprint.word_hashes import Hashes, hashed
from neardup.core.verify.alignment import NO_HASHES, Copied, copied
from neardup.core.verify.longest_run import longest_run
from neardup.core.verify.tiers import COMMON_WORDS, COPIED_WORDS, Thresholds, kind_of
from neardup.records import Assessment, Candidate, Signals

# Pairs with this containment or this many copied words are recorded, so that lower thresholds can be tried out on them.
NEAR_MISS = 0.3
NEAR_MISS_WORDS = 40
# Shingles.  Texts that share fewer are not aligned: as each run of a block has 3 words or more, NEAR_MISS_WORDS copied
# words share 26 shingles, or a few less where shingles repeat.
MIN_SHARED = 20

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


def measure(a: Shingled, b: Shingled, bits: int, common: PassageHashes = NO_HASHES) -> Signals:
    """The exact signals of two texts whose SimHashes differ in `bits` bits; `common` as for `assess`."""
    found = copied(a.words, b.words, common)
    return replace(_overlap(a, b, bits), longest_run_words=_longest_run(a, b, found), extra=_extra(found))


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


def assess(
    pair: Candidate,
    a: Shingled | None,
    b: Shingled | None,
    thresholds: Thresholds,
    common: PassageHashes = NO_HASHES,
) -> Assessment | None:
    """Verify a pair by its texts, or by its signatures where either text is missing.

    `common` are the hashes of common passages in the pair's language, ascending.  None for a pair with too little in
    common to be recorded.
    """
    [bits] = hamming(hash_rows([pair.a.simhash]), hash_rows([pair.b.simhash])).tolist()
    if pair.a.text_hash == pair.b.text_hash:
        signals = Signals(bits, True, 1.0, 1.0, 1.0, pair.a.words, extra={COPIED_WORDS: pair.a.words})
        whole = np.array([[0, pair.a.words]], np.int32)
        return Assessment(kind_of(signals, thresholds), signals, whole, whole)
    if not (a and b):
        signals = estimate(pair, bits)
        return _recorded(Assessment(kind_of(signals, thresholds), signals))
    signals = _overlap(a, b, bits)
    shared = signals.containment * min(len(a.shingles), len(b.shingles))
    if shared < MIN_SHARED and kind_of(signals, thresholds) is None and signals.containment < NEAR_MISS:
        return None
    found = copied(a.words, b.words, common)
    signals = replace(signals, extra=_extra(found))
    assessment = _recorded(Assessment(kind_of(signals, thresholds), signals, found.spans_a, found.spans_b))
    if assessment is None:
        return None
    return replace(assessment, signals=replace(signals, longest_run_words=_longest_run(a, b, found)))


def _recorded(assessment: Assessment) -> Assessment | None:
    """The assessment of a flag or a near miss; None for that of a pair with less in common."""
    signals = assessment.signals
    is_near_miss = signals.containment >= NEAR_MISS or signals.extra.get(COPIED_WORDS, 0) >= NEAR_MISS_WORDS
    return assessment if assessment.kind is not None or is_near_miss else None


def _longest_run(a: Shingled, b: Shingled, found: Copied) -> int:
    return longest_run(a.words, b.words) if found.longest_run is None else found.longest_run


def _extra(found: Copied) -> Mapping[str, float]:
    common = {COMMON_WORDS: found.common_words} if found.common_words else {}
    return {COPIED_WORDS: found.words} | common
