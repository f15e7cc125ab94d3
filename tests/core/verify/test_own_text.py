"""Laws: the own containment is what sets of word pairs give without those in common passages; a disclaimer makes no
copies of short stories, whatever their language; a popular text stays a copy where its passages are common.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.compute import hash_skeleton_of_text
from neardup.core.fingerprint.word_hashes import WINDOW, PassageHashes, hash_passages
from neardup.core.text.normalize import tokenize
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.own_text import LEAST_OWN, list_common_in_both, measure_own_containment, share_passages
from neardup.core.verify.scores import examine
from neardup.core.verify.tiers import COPIED_WORDS, PARTIAL, POPULAR, SIMILAR
from neardup.records import Kind, Language

from tests.core.verify.test_scores import Thresholds
from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.words import text_of_words

unhurried = settings(deadline=None)
words = st.lists(st.sampled_from([f"w{n}".encode() for n in range(30)]), min_size=1, max_size=60)


def common_of(passage: list[bytes]) -> PassageHashes:
    """All passage hashes that stories which hold this passage may have in common."""
    held = text_of_words(passage)
    return np.union1d(hash_passages(held.word_hashes), hash_skeleton_of_text(b" ".join(passage)))


def kind(a: list[bytes], b: list[bytes], common: PassageHashes) -> Kind | None:
    return examine(
        text_of_words(a), text_of_words(b), 50, Thresholds(), common, same_text=False, is_of_one_language=True
    ).kind


@unhurried
@given(words, words, st.integers(3 * WINDOW, 100), st.booleans())
def test_own_containment_is_that_of_the_words_apart_from_common_passages(
    first: list[bytes], second: list[bytes], n: int, is_first: bool
) -> None:
    prayer = [f"prayer{k}".encode() for k in range(n)]
    common = hash_passages(text_of_words(prayer).word_hashes)
    story = text_of_words([*prayer, *first] if is_first else [*first, *prayer])
    found, same = (
        measure_own_containment(story, text_of_words(second), common),
        measure_own_containment(story, story, common),
    )
    assert same is None or same == 1
    assert (found is None) == (same is None), "whether a story has own text depends on the other one"
    surely, perhaps = (first[2 * WINDOW :], first) if is_first else (first[: -2 * WINDOW], first)
    if found is None:
        assert len(set(pairwise(surely))) <= LEAST_OWN * len(story.shingles)
    else:
        assert found == 0 or set(pairwise(perhaps)) & set(pairwise(second))


@unhurried
@given(words.filter(lambda some: len(some) > 1), words)
def test_without_common_passages_it_is_the_containment(first: list[bytes], second: list[bytes]) -> None:
    pairs, others = set(pairwise(first)), set(pairwise(second))
    assert measure_own_containment(text_of_words(first), text_of_words(second), NO_HASHES) == len(pairs & others) / len(
        pairs
    )


@pytest.mark.parametrize("language", SAMPLED)
def test_a_disclaimer_makes_no_copies_of_short_stories(language: Language) -> None:
    text = tokenize(STORIES[language][0])
    disclaimer, a, b = text[:90], text[90:160], text[160:89:-1]
    common = common_of(disclaimer)
    assert kind([*a, *disclaimer], [*b, *disclaimer], NO_HASHES) in {SIMILAR, PARTIAL}
    assert kind([*a, *disclaimer], [*b, *disclaimer], common) is None
    assert kind([*a, *disclaimer], [*a, *b, *disclaimer], common) is not None, "the copy of a story with a disclaimer"


@pytest.mark.parametrize("language", SAMPLED)
def test_a_popular_text_is_a_copy_though_its_passages_are_common(language: Language) -> None:
    popular, rest = tokenize(STORIES[language][0]), tokenize(STORIES[language][0])[::-1]
    assert kind(popular, [*rest, *popular], common_of(popular)) in {SIMILAR, PARTIAL}


@unhurried
@given(words, words, st.data())
def test_a_common_passage_that_one_text_lacks_changes_nothing(
    first: list[bytes], second: list[bytes], data: st.DataObject
) -> None:
    a, b = text_of_words(first), text_of_words(second)
    both = np.intersect1d(a.passages, b.passages)
    common = np.array(sorted(data.draw(st.sets(st.sampled_from(both.tolist() or [0])))), np.uint32)
    more = np.union1d(common, np.setxor1d(a.passages, b.passages))
    assert list_common_in_both([(a, b)], more)[0].tolist() == np.intersect1d(common, both).tolist()
    assert share_passages(a, b, more) == share_passages(a, b, common) == (len(np.setdiff1d(both, common)) >= 2)
    fewer, found = (
        examine(a, b, 50, Thresholds(), hashes, same_text=False, is_of_one_language=True) for hashes in (common, more)
    )
    assert repr(fewer) == repr(found), "a passage that only one of them holds decides on the pair"


@pytest.mark.parametrize("language", SAMPLED)
def test_stories_alike_as_a_whole_count_all_words_and_parts_none_that_many_share(language: Language) -> None:
    popular = tokenize(" ".join(STORIES[language]))[:200]
    common = common_of(popular)
    edited = [b"edited%d" % n if n % 17 == 8 else word for n, word in enumerate(popular)]
    for copy, expected in ((edited, SIMILAR), ([*popular, *(b"more%d" % n for n in range(220))], PARTIAL)):
        found = examine(
            text_of_words(popular),
            text_of_words(copy),
            50,
            Thresholds(),
            common,
            same_text=False,
            is_of_one_language=True,
        )
        assert found.kind == expected
        assert found.signals.extra[COPIED_WORDS] > 150, "words of a common passage are not counted in a whole copy"
        assert POPULAR in found.signals.extra
    half = examine(
        text_of_words([*popular[:100], *(b"a%d" % n for n in range(80))]),
        text_of_words([*popular[:100], *(b"b%d" % n for n in range(80))]),
        50,
        Thresholds(),
        common,
        same_text=False,
        is_of_one_language=True,
    )
    assert half.kind is None and half.signals.extra[COPIED_WORDS] == 0
