"""Laws of the comparison of skeletons: a transliteration is found whole, and other stories have nothing in common;
the native function gives the grams that the skeleton has.
"""

import re
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.config import Thresholds
from neardup.core.fingerprint.skeleton import make_skeleton
from neardup.core.sets import ONE_PAIR
from neardup.core.text.consonants import CLASS_BITS
from neardup.core.text.normalize import tokenize
from neardup.core.verify.scores import examine
from neardup.core.verify.skeletons import find_copied_words, measure_overlaps, pack_grams, pair_spans, remove_common
from neardup.core.verify.spans import find_runs
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COPIED_WORDS, TRANSLITERATED
from neardup.records import Assessment, Language, Signals, Spans

from tests.support.builders import text_of_words
from tests.support.languages import ENGLISH, GUJARATI, SAMPLED, TAMIL, TELUGU
from tests.support.sample_texts import STORIES, transliterated

INDIC = [language for language in SAMPLED if language != ENGLISH]
FORWARD = {language: [text_of_words(tokenize(text)) for text in STORIES[language]] for language in SAMPLED}


def of_two_languages(a: Text, b: Text) -> Assessment:
    return examine(a, b, 64, Thresholds(), is_of_one_language=False)


def overlap(a: Text, b: Text) -> Signals:
    return measure_overlaps([a.skeleton_grams, b.skeleton_grams], ONE_PAIR, [64])[0]


def of_one_language(a: Text, b: Text) -> Assessment:
    return examine(a, b, 64, Thresholds(), is_of_one_language=True)


SPACINGS: dict[str, Callable[[str], str]] = {
    "none": lambda text: "".join(text.split()),
    "in each word": lambda text: re.sub(r"(\S\S)(?=\S)", r"\1 ", text),
    "after every second word": lambda text: re.sub(r"(\S+) (\S+)", r"\1\2", text),
    "points between letters": lambda text: re.sub(r"(?<=\S)(?=\S)", ".", text),
}


@pytest.mark.native
@settings(deadline=None)
@given(st.text(st.sampled_from("abktknsக്നकत्कبك ßé1\U0001d400"), max_size=80), st.integers(1, 10))
def test_grams_are_those_of_the_skeleton(text: str, size: int) -> None:
    normalised = text.encode()
    classes = make_skeleton(normalised).classes.tolist()
    expected = [
        sum(class_ << CLASS_BITS * (size - 1 - n) for n, class_ in enumerate(classes[at : at + size]))
        for at in range(len(classes) - size + 1)
    ]
    for grams in (pack_grams, pack_grams.reference):
        assert grams(normalised, size).tolist() == expected, f"grams of {size} classes of {text!r}"


@pytest.mark.parametrize("language", INDIC)
def test_a_transliteration_is_found_with_nearly_all_its_words(language: Language) -> None:
    story = STORIES[language][0]
    copy = text_of_words(tokenize(transliterated(story, language, GUJARATI if language == TELUGU else TELUGU)))
    found = of_two_languages(FORWARD[language][0], copy)
    assert found.kind == TRANSLITERATED, f"{language}: {found.signals}"
    assert found.signals.containment >= 0.9
    assert found.signals.extra[COPIED_WORDS] >= 0.9 * len(copy.words)


@pytest.mark.parametrize("language", SAMPLED)
def test_the_same_text_under_another_language_is_found_whole(language: Language) -> None:
    story = FORWARD[language][0]
    found = of_two_languages(story, story)
    assert (found.kind, found.signals.jaccard) == (TRANSLITERATED, 1.0)
    assert found.spans_a.tolist() == found.spans_b.tolist() and len(found.spans_a) == 1


@pytest.mark.parametrize("language", SAMPLED)
@pytest.mark.parametrize("disguise", SPACINGS)
def test_other_spaces_make_a_transliterated_copy(disguise: str, language: Language) -> None:
    story, copy = FORWARD[language][0], text_of_words(tokenize(SPACINGS[disguise](STORIES[language][0])))
    found = of_one_language(story, copy)
    assert found.kind == TRANSLITERATED, f"{disguise}: {found.signals}"
    assert found.signals.extra[COPIED_WORDS] >= 0.9 * min(len(story.words), len(copy.words))


@pytest.mark.parametrize("language", SAMPLED)
def test_other_stories_of_one_language_are_no_disguised_copies(language: Language) -> None:
    for a, b in combinations(FORWARD[language], 2):
        assert of_one_language(a, b).kind != TRANSLITERATED


def test_stories_of_other_languages_share_little() -> None:
    for first, second in combinations(SAMPLED, 2):
        for a in FORWARD[first]:
            for b in FORWARD[second]:
                shared = overlap(a, b).containment
                assert shared < 0.2, f"{first} and {second} share {shared:.2f}"


@pytest.mark.parametrize("language", INDIC)
def test_both_sides_have_the_same_findings(language: Language) -> None:
    a, b = FORWARD[language][0], text_of_words(tokenize(" ".join(STORIES[language][0].split()[50:])))
    forth, back = overlap(a, b), overlap(b, a)
    assert (forth.jaccard, forth.containment_a) == (back.jaccard, back.containment_b)
    first, second = find_copied_words(a.skeleton, b.skeleton), find_copied_words(b.skeleton, a.skeleton)
    assert first.spans_a.tolist() == second.spans_b.tolist()


@pytest.mark.parametrize("language", INDIC)
def test_each_passage_lies_in_both_texts_and_none_overlaps_another(language: Language) -> None:
    words = STORIES[language][0].split()
    a, b = FORWARD[language][0], text_of_words(tokenize(" ".join([*words[100:], *words[:100]])))
    found = find_copied_words(a.skeleton, b.skeleton)
    assert len(pair_spans(a.skeleton, b.skeleton, found.spans_a, found.spans_b)) >= 2, "two parts have changed places"
    shown = find_runs(a, b, of_two_languages(a, b))
    for text, sides in ((a, shown[:, :2]), (b, shown[:, 2:])):
        places = [place for start, end in sides.tolist() for place in range(start, end)]
        assert len(set(places)) == len(places) and max(places) < len(text.words)


def test_texts_without_consonants_share_nothing() -> None:
    empty = text_of_words([b"1", b"2"])
    assert of_two_languages(empty, FORWARD[TAMIL][0]).kind is None
    assert of_two_languages(empty, text_of_words([b"3", b"4"])).kind is None


stretches = st.lists(st.tuples(st.integers(0, 160), st.integers(0, 60)), max_size=3)


@settings(deadline=None)
@given(st.sampled_from(SAMPLED), st.permutations(range(4)), st.tuples(stretches, stretches))
def test_a_span_whose_counterpart_is_common_is_left_out(
    language: Language, order: list[int], common: tuple[list[tuple[int, int]], list[tuple[int, int]]]
) -> None:
    words = [word.decode() for word in tokenize(" ".join(STORIES[language]))[:160]]
    a = make_skeleton(" ".join(words).encode())
    b = make_skeleton(" ".join(word for n in order for word in words[40 * n : 40 * n + 40]).encode())
    masks = np.zeros((2, len(words)), bool)
    for mask, listed in zip(masks, common, strict=True):
        for start, length in listed:
            mask[start : start + length] = True
    left = remove_common(a, b, find_copied_words(a, b), (masks[0], masks[1]))
    pairs = pair_spans(a, b, left.spans_a, left.spans_b).tolist()
    assert {tuple(pair[:2]) for pair in pairs} == set(map(tuple, left.spans_a.tolist()))
    assert {tuple(pair[2:]) for pair in pairs} == set(map(tuple, left.spans_b.tolist()))
    assert not masks[0][words_in(left.spans_a)].any() and not masks[1][words_in(left.spans_b)].any()


def words_in(spans: Spans) -> list[int]:
    return [word for start, end in spans.tolist() for word in range(start, end)]
