"""Laws of rewritten stories: each disguise of a story is found in each language, and other stories are none; what is
found is the same from both sides, and each span begins and ends with an equal word.
"""

from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.config import Thresholds
from neardup.core.fingerprint.word_hashes import hash_passages
from neardup.core.text.normalize import tokenize
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.rewriting import compare_rare_words, find_longest_increasing
from neardup.core.verify.scores import assess, compare_texts
from neardup.core.verify.spans import find_rare_words, find_runs, pair_spans
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COPIED_WORDS, RARE_WORDS, REWRITTEN, find_kind
from neardup.insights.disguises import DISGUISED_EDITS
from neardup.insights.edits import OtherStories
from neardup.records import Assessment, Candidate, Language, PairedStory

from tests.support.languages import HINDI, SAMPLED
from tests.support.sample_texts import STORIES

FORWARD = {
    language: [" ".join(word.decode() for word in tokenize(text)) for text in STORIES[language]] for language in SAMPLED
}
# The least part of the samples that each disguise must be found in.  They have 40 to 116 rare words each, by which
# inflected words are not found.
LEAST_FOUND = {
    "words replaced, 33%": 0.95,
    "words replaced, 50%": 0.9,
    "fillers added after words, 50%": 0.95,
    "fillers added after words, 100%": 0.9,
    "words left out, 33%": 0.95,
    "words left out, 50%": 0.9,
    "words shuffled in groups, 67%": 0.95,
    "words shuffled in groups, 75%": 0.95,
    "synonyms, and clauses exchanged, 35%": 0.9,
    "synonyms, and clauses exchanged, 50%": 0.75,
}
EDITS = {edit.name: edit for edit in DISGUISED_EDITS}


def disguised(name: str, language: Language, nth: int) -> str:
    """A sample in a disguise, with words of the other samples of its language."""
    stories = [text.split() for n, text in enumerate(FORWARD[language]) if n != nth]
    others = OtherStories(language, stories, stories[0], stories[0], frozenset())
    made = EDITS[name].apply(FORWARD[language][nth], others, Random(f"{name} {nth}"))
    assert made is not None
    return made


def compared(a: str, b: str) -> Assessment:
    return compare_texts(Text(a), Text(b), Thresholds(), is_of_one_language=True)


@pytest.mark.parametrize("name", LEAST_FOUND)
def test_a_disguised_story_is_found_in_each_language(name: str) -> None:
    missed = [
        f"{language} {nth}"
        for language in SAMPLED
        for nth in range(len(FORWARD[language]))
        if compared(FORWARD[language][nth], disguised(name, language, nth)).kind is None
    ]
    stories = sum(map(len, FORWARD.values()))
    assert len(missed) <= (1 - LEAST_FOUND[name]) * stories, f"{len(missed)} of {stories}: {missed}"


def test_other_stories_are_not_rewritten() -> None:
    for language in SAMPLED:
        for a, b in combinations(STORIES[language], 2):
            assert compared(a, b).kind != REWRITTEN, f"{language}: {a[:40]}, {b[:40]}"


@pytest.mark.parametrize("language", SAMPLED)
def test_what_is_found_is_shown_and_is_the_same_from_both_sides(language: Language) -> None:
    a, b = FORWARD[language][0], disguised("words replaced, 33%", language, 0)
    found, mirrored = compared(a, b), compared(b, a)
    assert found.kind == mirrored.kind == REWRITTEN
    assert found.signals.extra == mirrored.signals.extra
    assert np.array_equal(found.spans_a, mirrored.spans_b) and np.array_equal(found.spans_b, mirrored.spans_a)
    runs = find_runs(Text(a), Text(b), found).tolist()
    words_a, words_b = a.split(), b.split()
    for start_a, end_a, start_b, end_b in runs:
        assert words_a[start_a:end_a] == words_b[start_b:end_b], "a run of equal words"
    assert (
        sum(end - start for start, end, *_ in runs)
        == found.signals.extra[COPIED_WORDS]
        >= found.signals.extra[RARE_WORDS]
    )
    named = [words_a[place] for place in find_rare_words(Text(a), Text(b), found).tolist()]
    assert len(set(named)) == len(named) >= found.signals.extra[RARE_WORDS], "each rare word is named once"
    assert set(named) <= set(words_b)
    starts, ends = {(run[0], run[2]) for run in runs}, {(run[1], run[3]) for run in runs}
    for start_a, end_a, start_b, end_b in pair_spans(Text(a), Text(b), found).tolist():
        assert (start_a, start_b) in starts and (end_a, end_b) in ends, "a span begins and ends with equal words"


def test_common_passages_do_not_count() -> None:
    """Two stories that share a long disclaimer with edits are not rewritten once its passages are common."""
    least = Thresholds().rare_share
    for language in SAMPLED:
        first, second, disclaimer, *_ = (text.split() for text in FORWARD[language])
        edited = [word for n, word in enumerate(disclaimer) if n % 7]
        a, b = (Text(" ".join([*story[:60], *shared])) for story, shared in ((first, disclaimer), (second, edited)))
        common = np.union1d(hash_passages(Text(" ".join(disclaimer)).word_hashes), hash_passages(b.word_hashes))
        assert compare_rare_words(a, b, NO_HASHES, least) is not None
        found = compare_rare_words(a, b, common, least)
        assert found is None or found.share < least, language


def test_words_in_letters_that_the_other_text_does_not_have_do_not_count() -> None:
    """Of a story of which each second word is written in Latin letters, the others are compared with those of both."""
    least = 0.53  # as most as .71; a share of all rare words would be .5 at most
    for text in FORWARD[HINDI]:
        half = " ".join(f"latin{n}" if n % 2 else word for n, word in enumerate(text.split()))
        found = compare_rare_words(Text(text), Text(half), NO_HASHES, least)
        assert found is not None and found.share >= least


def test_a_pair_that_is_nearly_rewritten_is_recorded_for_other_thresholds() -> None:
    a, b = (Text(text) for text in (FORWARD[HINDI][0], disguised("words replaced, 50%", HINDI, 0)))
    sides = [
        PairedStory(n, HINDI, None, text.text_hash, text.fingerprint.simhash, None, 300, 300)
        for n, text in enumerate((a, b))
    ]
    found = assess(Candidate(*sides), a, b, Thresholds(rare_share=0.99))
    assert found is not None and found.kind is None
    assert find_kind(found.signals, Thresholds()) == REWRITTEN


@given(st.lists(st.integers(0, 50), unique=True, max_size=12))
def test_no_increasing_subsequence_is_longer(numbers: list[int]) -> None:
    kept = find_longest_increasing(numbers)
    assert all(a < b and numbers[a] < numbers[b] for a, b in pairwise(kept))
    lengths = list[int]()
    for n, number in enumerate(numbers):
        lengths.append(1 + max((lengths[k] for k in range(n) if numbers[k] < number), default=0))
    assert len(kept) == max(lengths, default=0)
