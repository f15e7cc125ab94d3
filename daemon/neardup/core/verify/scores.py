"""The exact arithmetic on a nominated pair, by which its tier is decided.

Jaccard similarity and containment are Broder's resemblance and containment (SEQUENCES 1997), of the
sets of word pairs of the two texts.

Of the common passages only those that both stories hold decide whether they are copies, or only bear the same
disclaimer.  So a passage that becomes common changes nothing but the pairs among its holders.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from neardup.core.fingerprint.minhash import count_agreeing_rows, estimate_jaccard, stack_signatures
from neardup.core.fingerprint.word_hashes import MIN_SHARED, Hashes, PassageHashes
from neardup.core.sets import (
    ONE_PAIR,
    Pairs,
    are_among,
    are_among_ascending,
    count_shared,
    count_shared_of_pairs,
    count_uncommon_of_pairs,
    find_distinct,
)
from neardup.core.text.scripts import find_script_of_most
from neardup.core.verify import skeletons
from neardup.core.verify.alignment import (
    NO_HASHES,
    Mask,
    find_copied_of_pairs,
    hash_own_pairs,
    mask_common,
    measure_longest_run,
    pair_shared_shingles,
    span_places,
)
from neardup.core.verify.rewriting import compare_rare_words, list_equal_words
from neardup.core.verify.spans import count_words
from neardup.core.verify.text import Text, TextPair, list_distinct_texts
from neardup.core.verify.tiers import (
    COMMON_WORDS,
    COPIED_WORDS,
    LABELS,
    LANGUAGES,
    LONG_SPANS,
    OWN_CONTAINMENT,
    POPULAR,
    RARE_SHARE,
    RARE_SPANS,
    RARE_WORDS,
    REWRITTEN_WORDS,
    SHORT,
    Thresholds,
    counts_common,
    find_kind,
)
from neardup.records import Assessment, Candidate, Copied, Language, Signals

# Pairs with this containment or this many copied words are recorded, so that lower thresholds can be tried out on them.
NEAR_MISS = 0.3
NEAR_MISS_WORDS = 20
NEAR_MISS_SHARE = 0.25  # of the rare words
# Shingles.  Texts that share fewer are not aligned: as each run of a block has 3 words or more, NEAR_MISS_WORDS copied
# words share 13 shingles, or a few less where shingles repeat.  A lower `passage_words` has fewer.
MIN_SHARED_SHINGLES = 10
# Shingles, or words of skeletons.  Half of a short story may be a greeting or a form, which many of its kind share.
SHORT_PART = 40
# The share of the words in long spans that are written otherwise; passages of equal words are no disguise.
LEAST_UNEQUAL = 0.1
# Of the shorter of two texts of two languages; translations into sister languages have some loan words in a row.
LEAST_OF_TWO_LANGUAGES = 0.25
# How much the containment of two skeletons of which a part is disguised exceeds that of the words, in one language, and
# in two, where the part is a quarter or more.
MORE_ALIKE, MORE_ALIKE_IN_TWO = 0.02, 0.1

# A story with at most this share of its shingles apart from common passages is a popular text, judged as a whole.
LEAST_OWN = 0.1
MOST_SKELETONS = 64  # that are kept


def estimate(pair: Candidate, bits: int) -> Signals:
    """The signals that two signatures give, for a pair of which a text is missing; `bits` alone without signatures."""
    if pair.a.signature is None or pair.b.signature is None:
        return Signals(bits)
    rows = count_agreeing_rows(stack_signatures([pair.a.signature]), stack_signatures([pair.b.signature]))[0]
    jaccard = estimate_jaccard(int(rows))
    common = jaccard / (1 + jaccard) * (pair.a.shingles + pair.b.shingles)
    return Signals(
        bits,
        jaccard=jaccard,
        containment_a=min(1.0, common / pair.a.shingles),
        containment_b=min(1.0, common / pair.b.shingles),
        estimated=True,
    )


class ComparedPair(NamedTuple):
    """A pair to verify, and its texts, None where one is missing."""

    pair: Candidate
    a: Text | None
    b: Text | None


def assess(
    pair: Candidate, a: Text | None, b: Text | None, thresholds: Thresholds, common: PassageHashes = NO_HASHES
) -> Assessment | None:
    """As `assess_all`, of one pair."""
    return assess_all([ComparedPair(pair, a, b)], lambda _: thresholds, lambda _: common)[0]


def assess_all(
    pairs: Sequence[ComparedPair],
    thresholds_of: Callable[[Language], Thresholds],
    common_of: Callable[[Language], PassageHashes],
) -> list[Assessment | None]:
    """Verify pairs by their texts, or by their signatures where either text is missing.

    The thresholds, and the hashes of common passages, ascending, are those of the pair's language.  The skeletons are
    compared if the stories are filed under two languages and are in two scripts, or if the words make the pair no copy.
    None for a pair with too little in common to be recorded.
    """
    found: list[Assessment | None] = [None] * len(pairs)
    with_texts = defaultdict[Language, list[tuple[int, _Texts]]](list)
    for n, (pair, a, b) in enumerate(pairs):
        bits = _count_differing_bits(pair.a.simhash, pair.b.simhash)
        languages = 1 if pair.is_of_one_language else 2
        if pair.a.text_hash == pair.b.text_hash:
            found[n] = _assess_same_text(pair.a.words, bits, languages, thresholds_of(pair.language))
        elif a and b:
            with_texts[pair.language].append((n, _Texts(a, b, bits, languages)))
        elif languages == 1:
            signals = estimate(pair, bits)
            found[n] = _drop_unrecorded(Assessment(find_kind(signals, thresholds_of(pair.language)), signals))
    for language, texts in with_texts.items():
        thresholds = thresholds_of(language)
        assessed = _assess_texts([both for _, both in texts], thresholds, common_of(language))
        for (n, _), assessment in zip(texts, assessed, strict=True):
            found[n] = assessment
    return found


class _Texts(NamedTuple):
    """The texts of a pair, the bits in which their SimHashes differ, and under how many languages they are filed."""

    a: Text
    b: Text
    bits: int
    languages: int

    @property
    def are_in_two_scripts(self) -> bool:
        """Whether only their skeletons can be compared."""
        return self.languages == 2 and (self.a.script is None or self.a.script != self.b.script)


def _assess_same_text(words: int, bits: int, languages: int, thresholds: Thresholds) -> Assessment:
    """The assessment of two texts that are the same: each word is copied, those of common passages too."""
    extra = {COPIED_WORDS: words} | _measure_labels(languages)
    signals = Signals(bits, True, 1.0, 1.0, 1.0, words, extra=extra)
    whole = np.array([[0, words]], np.int32)
    return Assessment(find_kind(signals, thresholds), signals, whole, whole)


def compare_texts(
    a: Text, b: Text, thresholds: Thresholds, common: PassageHashes = NO_HASHES, *, is_of_one_language: bool
) -> Assessment:
    """The assessment of two texts that are at hand, with all signals, however little they have in common."""
    bits = _count_differing_bits(a.fingerprint.simhash, b.fingerprint.simhash)
    return examine(a, b, bits, thresholds, common, is_of_one_language=is_of_one_language)


def _count_differing_bits(a: bytes, b: bytes) -> int:
    """The Hamming distance of two SimHashes."""
    return (int.from_bytes(a) ^ int.from_bytes(b)).bit_count()


def examine(
    a: Text, b: Text, bits: int, thresholds: Thresholds, common: PassageHashes = NO_HASHES, *, is_of_one_language: bool
) -> Assessment:
    """As `compare_texts`, of texts whose fingerprints are known to differ in so many bits."""
    texts = _Texts(a, b, bits, 1 if is_of_one_language else 2)
    if a.text_hash == b.text_hash:
        return _assess_same_text(len(a.word_hashes), bits, texts.languages, thresholds)
    if texts.are_in_two_scripts:
        return _assess_skeletons([texts], thresholds, common)[0]
    overlap = _compare_shingles(texts)
    [by_words] = _assess_copied([texts], [overlap], [a.word_hashes, b.word_hashes], ONE_PAIR, thresholds, common)
    by_words = _measure_run(texts, by_words)
    if by_words.kind is not None:
        return by_words
    for assess_others in (_assess_disguised, _assess_rewritten):
        assessment = assess_others([texts], thresholds, common).get(0)
        if assessment is not None and assessment.kind is not None:
            return assessment
    return by_words


def _compare_shingles(texts: _Texts) -> Signals:
    a, b = texts.a.shingles, texts.b.shingles
    return skeletons.measure_overlap(len(a), len(b), count_shared(a, b), texts.bits)


def _assess_texts(pairs: Sequence[_Texts], thresholds: Thresholds, common: PassageHashes) -> list[Assessment | None]:
    """The assessments of pairs by their words, or by their skeletons where these alone can decide."""
    found: list[Assessment | None] = [None] * len(pairs)
    by_words, in_two_scripts = list[int](), list[int]()
    for n, texts in enumerate(pairs):
        (in_two_scripts if texts.are_in_two_scripts else by_words).append(n)
    by_skeletons = _assess_skeletons([pairs[n] for n in in_two_scripts], thresholds, common)
    for n, overlap in zip(in_two_scripts, by_skeletons, strict=True):
        found[n] = _drop_unrecorded(overlap)
    for n, assessment in zip(by_words, _assess_words([pairs[n] for n in by_words], thresholds, common), strict=True):
        found[n] = assessment
    for assess_others in (_assess_disguised, _assess_rewritten):
        no_copies = [n for n in by_words if (assessment := found[n]) is None or assessment.kind is None]
        for place, other in assess_others([pairs[n] for n in no_copies], thresholds, common).items():
            if found[no_copies[place]] is None or other.kind is not None:
                found[no_copies[place]] = other
    return found


def _assess_words(pairs: Sequence[_Texts], thresholds: Thresholds, common: PassageHashes) -> list[Assessment | None]:
    """The assessments of pairs by their words; None for a pair with too little in common to be recorded."""
    texts, places = list_distinct_texts(pairs)
    shared_of = count_shared_of_pairs([text.shingles for text in texts], places).tolist()
    overlaps = [
        skeletons.measure_overlap(len(a.shingles), len(b.shingles), shared, bits)
        for (a, b, bits, _), shared in zip(pairs, shared_of, strict=True)
    ]
    aligned, least_words = list[int](), min(NEAR_MISS_WORDS, thresholds.passage_words)
    least_shared = min(MIN_SHARED_SHINGLES, least_words * 2 // 3)
    for n, (overlap, shared) in enumerate(zip(overlaps, shared_of, strict=True)):
        if overlap.containment < NEAR_MISS and find_kind(overlap, thresholds) is None:  # passages decide
            if shared < least_shared:
                continue
            places[n, 2] = least_words
        aligned.append(n)
    found: list[Assessment | None] = [None] * len(pairs)
    words, compared = [text.word_hashes for text in texts], [pairs[n] for n in aligned]
    assessed = _assess_copied(compared, [overlaps[n] for n in aligned], words, places[aligned], thresholds, common)
    for n, assessment in zip(aligned, assessed, strict=True):
        recorded = _drop_unrecorded(assessment)
        found[n] = recorded and _measure_run(pairs[n], recorded)
    return found


def _assess_copied(  # noqa: PLR0917 - what both callers have at hand
    pairs: Sequence[_Texts],
    overlaps: Sequence[Signals],
    words: Sequence[Hashes],
    places: Pairs,
    thresholds: Thresholds,
    common: PassageHashes,
) -> list[Assessment]:
    """The assessments of pairs by what their texts share; `places` are those of their texts in `words`.

    The longest run is measured only where the alignment finds it.  A copy without a block shows the shared shingles.
    """
    copied = find_copied_of_pairs(words, places, NO_HASHES)
    commons = _list_common_of_copied(pairs, copied, common)
    shares = _find_copied_apart(words, places, copied, commons)
    signals = [
        replace(overlap, extra=_measure_extra(texts, overlap, share, held), longest_run_words=share.longest_run)
        for texts, overlap, share, held in zip(pairs, overlaps, shares, commons, strict=True)
    ]
    for n, measured in enumerate(signals):
        if shares[n].common_words and counts_common(measured, thresholds):
            extra = {name: value for name, value in measured.extra.items() if name != COMMON_WORDS}
            shares[n], signals[n] = copied[n], replace(measured, extra=extra | {COPIED_WORDS: copied[n].words})
    found = [
        Assessment(find_kind(measured, thresholds), measured, share.spans_a, share.spans_b)
        for measured, share in zip(signals, shares, strict=True)
    ]
    for n, assessment in enumerate(found):
        if assessment.kind is not None and not copied[n].words:
            spans_a, spans_b = map(span_places, pair_shared_shingles(*(words[place] for place in places[n, :2])))
            found[n] = replace(assessment, spans_a=spans_a, spans_b=spans_b)
    return found


def _list_common_of_copied(
    pairs: Sequence[_Texts], copied: Sequence[Copied], common: PassageHashes
) -> list[PassageHashes]:
    """The common passages that both texts of each pair hold; none where nothing is copied, so that none counts."""
    found = [NO_HASHES] * len(pairs)
    with_copies = [n for n, share in enumerate(copied) if share.words]
    for n, held in zip(with_copies, list_common_in_both([pairs[n] for n in with_copies], common), strict=True):
        found[n] = held
    return found


def list_common_in_both(pairs: Sequence[TextPair], common: PassageHashes) -> list[PassageHashes]:
    """The hashes of common passages, (n,) ascending -> those that both texts of each pair hold, ascending."""
    if not len(common):
        return [common] * len(pairs)
    texts, places = list_distinct_texts(pairs)
    held = [text.passages[are_among_ascending(text.passages, common)] for text in texts]
    return [held[a][are_among_ascending(held[a], held[b])] for a, b, _ in places.tolist()]


def share_passages(a: Text, b: Text, common: PassageHashes) -> bool:
    """Whether passages nominate two texts: they share MIN_SHARED passage hashes that are not common."""
    return bool(count_uncommon_of_pairs((a.passages, b.passages), ONE_PAIR, common)[0] >= MIN_SHARED)


def measure_own_containment(story: Text, other: Text, common: PassageHashes) -> float | None:
    """The share of a story's shingles apart from common passages that another story has, 0 to 1.

    `common` (n,) are the hashes of the common passages that both hold, ascending.  None for a story that is little more
    than common passages.
    """
    own = find_distinct(hash_own_pairs(story.word_hashes, common))
    return None if len(own) <= LEAST_OWN * len(story.shingles) else count_shared(own, other.shingles) / len(own)


def _find_copied_apart(
    words: Sequence[Hashes], places: Pairs, copied: Sequence[Copied], commons: Sequence[PassageHashes]
) -> list[Copied]:
    """What the texts of each pair share apart from its common passages; `copied` is what they share in all."""
    pairs_of = defaultdict[bytes, list[int]](list)
    for n, held in enumerate(commons):
        if len(held):
            pairs_of[held.tobytes()].append(n)
    found = list(copied)
    for numbers in pairs_of.values():
        apart = find_copied_of_pairs(words, places[numbers], commons[numbers[0]])
        for n, share in zip(numbers, apart, strict=True):
            found[n] = share
    return found


def _measure_run(texts: _Texts, assessment: Assessment) -> Assessment:
    """The assessment with the longest run, where the alignment did not find it; few pairs are worth the time."""
    signals = assessment.signals
    if signals.longest_run_words is not None:
        return assessment
    run = measure_longest_run(texts.a.word_hashes, texts.b.word_hashes)
    return replace(assessment, signals=replace(signals, longest_run_words=run))


def _assess_disguised(pairs: Sequence[_Texts], thresholds: Thresholds, common: PassageHashes) -> dict[int, Assessment]:
    """The assessments of pairs in one script, by their places, whose skeletons make them copies."""
    texts, places = list_distinct_texts(pairs)
    shared = count_uncommon_of_pairs([text.skeleton_hashes for text in texts], places, common)
    alike = np.flatnonzero(shared >= MIN_SHARED).tolist()
    assessed = _assess_skeletons([pairs[n] for n in alike], thresholds, common)
    return {n: assessment for n, assessment in zip(alike, assessed, strict=True) if assessment.kind is not None}


def _assess_rewritten(pairs: Sequence[_Texts], thresholds: Thresholds, common: PassageHashes) -> dict[int, Assessment]:
    """The assessments of pairs of one language, by their places, of which enough rare words are in the same order."""
    texts, places = list_distinct_texts(pairs)
    shared = count_shared_of_pairs([text.rare_hashes for text in texts], places)
    alike = [n for n in np.flatnonzero(shared >= REWRITTEN_WORDS).tolist() if pairs[n].languages == 1]
    commons = list_common_in_both([pairs[n] for n in alike], common)
    assessed = (_assess_rewriting(pairs[n], held, thresholds) for n, held in zip(alike, commons, strict=True))
    return {n: assessment for n, assessment in zip(alike, assessed, strict=True) if assessment is not None}


def _assess_rewriting(texts: _Texts, common: PassageHashes, thresholds: Thresholds) -> Assessment | None:
    """The assessment of a pair of which one is a rewriting, or nearly; `common` are the passages that both hold."""
    a, b = texts.a, texts.b
    found = compare_rare_words(a, b, common, min(thresholds.rare_share, NEAR_MISS_SHARE))
    if found is None or found.rare_words < REWRITTEN_WORDS:
        return None
    reach = min(count_words(found.spans_a), count_words(found.spans_b))
    signals = Signals(texts.bits, extra={RARE_WORDS: found.rare_words, RARE_SHARE: found.share, RARE_SPANS: reach})
    kind = find_kind(signals, thresholds)
    if kind is None and found.share < NEAR_MISS_SHARE:
        return None
    copied = {COPIED_WORDS: len(list_equal_words(a, b, found.spans_a, found.spans_b)[0])}
    overlap = _compare_shingles(texts)
    run = measure_longest_run(a.word_hashes, b.word_hashes)
    signals = replace(overlap, extra={**signals.extra, **copied}, longest_run_words=run)
    return Assessment(kind, signals, found.spans_a, found.spans_b)


def _assess_skeletons(pairs: Sequence[_Texts], thresholds: Thresholds, common: PassageHashes) -> list[Assessment]:
    """The assessments of pairs by their skeletons; copies must be that apart from common passages as well.

    Only skeletons that are more alike than the words are aligned, as those of a disguised part are.
    """
    texts, places = list_distinct_texts(pairs)
    overlaps = skeletons.measure_overlaps(
        [text.skeleton_grams for text in texts], places, [pair.bits for pair in pairs]
    )
    shared = count_shared_of_pairs([text.shingles for text in texts], places).tolist()
    skeleton_of = lru_cache(MOST_SKELETONS)(lambda place: texts[place].skeleton)  # some texts are in many pairs
    found = list[Assessment]()
    for n, (pair, overlap) in enumerate(zip(pairs, overlaps, strict=True)):
        signals = _add_signal(overlap, LANGUAGES, pair.languages)
        of_words = shared[n] / max(min(len(pair.a.shingles), len(pair.b.shingles)), 1)
        assessment = None
        more_alike = MORE_ALIKE if pair.languages == 1 else MORE_ALIKE_IN_TWO
        if find_kind(signals, thresholds) is not None or signals.containment > of_words + more_alike:
            copied = skeletons.find_copied_words(*map(skeleton_of, places[n, :2].tolist()))
            assessment = _assess_alike(pair, signals, copied, thresholds, common)
        found.append(assessment or Assessment(None, signals))
    return found


def _assess_alike(
    texts: _Texts, signals: Signals, copied: Copied, thresholds: Thresholds, common: PassageHashes
) -> Assessment | None:
    """The assessment of a pair by what its aligned skeletons share; None where that is too little.

    In two languages equal words are code and names, which translations of a page share as well, and in one script those
    into sister languages share much that is nearly equal.
    """
    spans = copied.spans_a, copied.spans_b
    if (
        find_kind(_add_signal(signals, LONG_SPANS, min(map(skeletons.count_words_in_long_spans, spans))), thresholds)
        is None
    ):
        return None
    a, b = texts.a, texts.b
    [held] = list_common_in_both([texts], common)
    in_common = mask_common(a.word_hashes, held), mask_common(b.word_hashes, held)
    equal = are_among(a.word_hashes, b.word_hashes), are_among(b.word_hashes, a.word_hashes)
    left_out = (in_common[0] | equal[0], in_common[1] | equal[1]) if texts.languages == 2 else in_common
    if left_out[0].any() or left_out[1].any():
        grams = [skeletons.list_own_grams(text.normalised, mask) for text, mask in zip((a, b), left_out, strict=True)]
        [overlap] = skeletons.measure_overlaps(grams, ONE_PAIR, [texts.bits])
        signals = replace(overlap, extra=signals.extra)
    if in_common[0].any() or in_common[1].any():
        copied = skeletons.remove_common(a.skeleton, b.skeleton, copied, in_common)
    spans = copied.spans_a, copied.spans_b
    words, unequal = (min(map(skeletons.count_words_in_long_spans, spans, masks)) for masks in (left_out, equal))
    is_disguised = texts.languages == 1 or (
        words >= LEAST_OF_TWO_LANGUAGES * min(len(a.word_hashes), len(b.word_hashes))
        and _find_script(a, ~equal[0]) != _find_script(b, ~equal[1])
    )
    if is_disguised and unequal >= LEAST_UNEQUAL * words:
        signals = _add_signal(signals, LONG_SPANS, words)
    signals = _add_signal(signals, COPIED_WORDS, copied.words)
    if copied.words < SHORT_PART:
        signals = _add_signal(signals, SHORT, 1)
    kind = find_kind(signals, thresholds) if copied.words else None
    return Assessment(kind, signals, *spans)


def _add_signal(signals: Signals, name: str, value: float) -> Signals:
    """The signals with one of a tier more."""
    return replace(signals, extra={**signals.extra, name: value})


def _find_script(text: Text, mask: Mask) -> str | None:
    """The script of most letters of some words of a text."""
    return find_script_of_most(
        b" ".join(word for word, is_meant in zip(text.words, mask, strict=True) if is_meant).decode()
    )


def _drop_unrecorded(assessment: Assessment) -> Assessment | None:
    """The assessment of a flag or a near miss; None for that of a pair with less in common."""
    return assessment if assessment.kind is not None or _is_near_miss(assessment.signals) else None


def _is_near_miss(signals: Signals) -> bool:
    return signals.containment >= NEAR_MISS or signals.extra.get(COPIED_WORDS, 0) >= NEAR_MISS_WORDS


def _measure_extra(texts: _Texts, overlap: Signals, found: Copied, common: PassageHashes) -> dict[str, float]:
    """What a pair shares beside its overlap; `common` are the passages that both hold.

    What the story with fewer shingles shares apart from them counts where they may be most of the overlap.
    """
    extra: dict[str, float] = {COPIED_WORDS: found.words}
    if found.common_words:
        extra[COMMON_WORDS] = found.common_words
    extra |= _measure_labels(texts.languages)
    if (overlap.containment_a or 0) * len(texts.a.shingles) < SHORT_PART - 0.5:
        extra |= {SHORT: 1}
    if found.common_words and overlap.containment >= NEAR_MISS:
        few, many = sorted((texts.a, texts.b), key=lambda text: (len(text.shingles), text.text_hash))
        own = measure_own_containment(few, many, common)
        extra |= {POPULAR: 1} if own is None else {OWN_CONTAINMENT: own}
    return extra


def _measure_labels(languages: int) -> dict[str, float]:
    return {LABELS: languages} if languages > 1 else {}
