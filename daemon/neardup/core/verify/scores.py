"""The exact arithmetic on a nominated pair, by which its tier is decided.

Jaccard similarity and containment are Broder's resemblance and containment (SEQUENCES 1997), of the
sets of word pairs of the two texts.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.minhash import agreeing, estimated_jaccard, signature_rows
from neardup.core.fingerprint.passage_hashes import MIN_SHARED, PassageHashes
from neardup.core.fingerprint.skeleton import LEAST
from neardup.core.verify import skeletons
from neardup.core.verify.alignment import NO_HASHES, copied
from neardup.core.verify.longest_run import longest_run
from neardup.core.verify.own_text import own_containment
from neardup.core.verify.sets import count_shared, count_shared_apart
from neardup.core.verify.shingled import Shingled
from neardup.core.verify.tiers import (
    COMMON_WORDS,
    COPIED_WORDS,
    LABELS,
    LANGUAGES,
    OWN_CONTAINMENT,
    Thresholds,
    kind_of,
)
from neardup.records import Assessment, Candidate, Copied, Signals

# Pairs with this containment or this many copied words are recorded, so that lower thresholds can be tried out on them.
NEAR_MISS = 0.3
NEAR_MISS_WORDS = 40
# Shingles.  Texts that share fewer are not aligned: as each run of a block has 3 words or more, NEAR_MISS_WORDS copied
# words share 26 shingles, or a few less where shingles repeat.
MIN_SHARED_SHINGLES = 20
# The share of the skeleton hashes of the shorter of two long texts.  They are a sample of the grams of its skeleton, so
# texts that share less of them share far less than the threshold of grams.
LEAST_SHARED = 0.25

HashRows = npt.NDArray[np.uint64]  # (n, 2): SimHashes as two words each


def hash_rows(simhashes: Sequence[bytes]) -> HashRows:
    """N SimHashes of 16 bytes -> (n, 2) uint64."""
    return np.frombuffer(b"".join(simhashes), np.uint64).reshape(-1, 2)


def hamming(left: HashRows, right: HashRows) -> npt.NDArray[np.int64]:
    """The Hamming distance, row by row; shapes broadcast over all but the last axis."""
    differing: npt.NDArray[np.uint8] = np.bitwise_count(left ^ right)
    return np.asarray(differing.sum(axis=-1, dtype=np.int64))


def _overlap(a: Shingled, b: Shingled, bits: int) -> tuple[Signals, int]:
    """The signals of the shingles of two texts, and how many they share."""
    size_a, size_b = len(a.shingles), len(b.shingles)
    shared = count_shared(a.shingles, b.shingles) if size_a < size_b else count_shared(b.shingles, a.shingles)
    return Signals(
        bits,
        jaccard=shared / (size_a + size_b - shared),
        containment_a=shared / size_a,
        containment_b=shared / size_b,
    ), shared


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

    `common` are the hashes of common passages in the pair's language, ascending.  The skeletons are compared if the
    stories are filed under two languages and are in two scripts, or if the words make the pair no copy.  None for a
    pair with too little in common to be recorded.
    """
    bits = (int.from_bytes(pair.a.simhash) ^ int.from_bytes(pair.b.simhash)).bit_count()
    languages = 1 if pair.is_of_one_language else 2
    if pair.a.text_hash == pair.b.text_hash:
        extra = {COPIED_WORDS: pair.a.words} | _labels(languages)
        signals = Signals(bits, True, 1.0, 1.0, 1.0, pair.a.words, extra=extra)
        whole = np.array([[0, pair.a.words]], np.int32)
        return Assessment(kind_of(signals, thresholds), signals, whole, whole)
    if not (a and b):
        signals = estimate(pair, bits)
        return _recorded(Assessment(kind_of(signals, thresholds), signals)) if pair.is_of_one_language else None
    if languages == 2 and not _are_in_one_script(a, b):
        return _recorded(_assess_skeletons(a, b, bits, thresholds, languages))
    by_words = _assess_words(a, b, bits, thresholds, common, languages)
    if by_words is not None and by_words.kind is not None:
        return by_words
    return _disguised(a, b, bits, thresholds, common, languages) or by_words


def examine(
    a: Shingled,
    b: Shingled,
    bits: int,
    thresholds: Thresholds,
    common: PassageHashes = NO_HASHES,
    *,
    same_text: bool,
    is_of_one_language: bool,
) -> Assessment:
    """As `assess`, with all signals, however little two texts have in common."""
    languages = 1 if is_of_one_language else 2
    if languages == 2 and not _are_in_one_script(a, b):
        return _assess_skeletons(a, b, bits, thresholds, languages)
    found = copied(a.words, b.words, common)
    overlap, _ = _overlap(a, b, bits)
    run = longest_run(a.words, b.words) if found.longest_run is None else found.longest_run
    extra = _extra(found, languages) | _own(a, b, found, overlap, common)
    signals = replace(overlap, same_text=same_text, longest_run_words=run, extra=extra)
    by_words = Assessment(kind_of(signals, thresholds), signals, found.spans_a, found.spans_b)
    return by_words if by_words.kind is not None else _disguised(a, b, bits, thresholds, common, languages) or by_words


def _are_in_one_script(a: Shingled, b: Shingled) -> bool:
    return a.script is not None and a.script == b.script


def _disguised(  # noqa: PLR0917 - what `assess` and `examine` have at hand
    a: Shingled, b: Shingled, bits: int, thresholds: Thresholds, common: PassageHashes, languages: int
) -> Assessment | None:
    """The assessment of two texts in one script by their skeletons; None where these do not make them copies."""
    hashes = min(len(a.skeleton_hashes), len(b.skeleton_hashes))
    least = LEAST_SHARED * hashes if hashes > LEAST else MIN_SHARED
    if count_shared_apart(a.skeleton_hashes, b.skeleton_hashes, common) < least:
        return None
    assessment = _assess_skeletons(a, b, bits, thresholds, languages)
    return None if assessment.kind is None else assessment


def _assess_skeletons(a: Shingled, b: Shingled, bits: int, thresholds: Thresholds, languages: int) -> Assessment:
    signals = replace(skeletons.overlap(a.skeleton_grams, b.skeleton_grams, bits), extra={LANGUAGES: languages})
    kind = kind_of(signals, thresholds)
    if kind is None:
        return Assessment(None, signals)
    found = skeletons.copied_words(a.skeleton, b.skeleton)
    signals = replace(signals, extra={LANGUAGES: languages, COPIED_WORDS: found.words})
    return Assessment(kind, signals, found.spans_a, found.spans_b)


def _assess_words(  # noqa: PLR0917 - what `assess` has at hand
    a: Shingled, b: Shingled, bits: int, thresholds: Thresholds, common: PassageHashes, languages: int
) -> Assessment | None:
    overlap, shared = _overlap(a, b, bits)
    passages_decide = overlap.containment < NEAR_MISS and kind_of(overlap, thresholds) is None
    if passages_decide and shared < MIN_SHARED_SHINGLES:
        return None
    found = copied(a.words, b.words, common, NEAR_MISS_WORDS if passages_decide else 0)
    extra = _extra(found, languages) | _own(a, b, found, overlap, common)
    signals = replace(overlap, longest_run_words=found.longest_run, extra=extra)
    kind = kind_of(signals, thresholds)
    if kind is None and not _is_near_miss(signals):
        return None
    if found.longest_run is None:
        signals = replace(signals, longest_run_words=longest_run(a.words, b.words))
    return Assessment(kind, signals, found.spans_a, found.spans_b)


def _recorded(assessment: Assessment) -> Assessment | None:
    """The assessment of a flag or a near miss; None for that of a pair with less in common."""
    return assessment if assessment.kind is not None or _is_near_miss(assessment.signals) else None


def _is_near_miss(signals: Signals) -> bool:
    return signals.containment >= NEAR_MISS or signals.extra.get(COPIED_WORDS, 0) >= NEAR_MISS_WORDS


def _extra(found: Copied, languages: int) -> dict[str, float]:
    common = {COMMON_WORDS: found.common_words} if found.common_words else {}
    return {COPIED_WORDS: found.words} | common | _labels(languages)


def _own(a: Shingled, b: Shingled, found: Copied, overlap: Signals, common: PassageHashes) -> dict[str, float]:
    """What the story with fewer shingles shares apart from common passages, where these may be most of the overlap."""
    if not found.common_words or overlap.containment < NEAR_MISS:
        return {}
    few, many = (a, b) if len(a.shingles) <= len(b.shingles) else (b, a)
    own = own_containment(few, many, common)
    return {} if own is None else {OWN_CONTAINMENT: own}


def _labels(languages: int) -> dict[str, float]:
    return {LABELS: languages} if languages > 1 else {}
