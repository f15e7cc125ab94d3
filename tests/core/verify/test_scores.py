"""Laws: scores are what sets of word pairs give, one by one; a pair gets the first kind that holds; where a text is
gone the signatures speak, and the finding says so.

The own containment is what sets of word pairs give without those in common passages; a disclaimer makes no copies of
short stories, whatever their language; a popular text stays a copy where its passages are common.
"""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.config import Thresholds
from neardup.core.fingerprint.compute import fingerprint, hash_skeleton_of_text
from neardup.core.fingerprint.word_hashes import WINDOW, PassageHashes, hash_passages
from neardup.core.text.normalize import tokenize
from neardup.core.verify.alignment import NO_HASHES, measure_longest_run
from neardup.core.verify.scores import (
    LEAST_OWN,
    NEAR_MISS,
    NEAR_MISS_WORDS,
    ComparedPair,
    assess,
    assess_all,
    examine,
    list_common_in_both,
    measure_own_containment,
    share_passages,
)
from neardup.core.verify.spans import count_words
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import (
    COMMON_WORDS,
    COPIED_WORDS,
    EXACT,
    LABELS,
    LANGUAGES,
    NEAR,
    PARTIAL,
    PASSAGE,
    POPULAR,
    SIMILAR,
    TRANSLITERATED,
    find_kind,
    list_kinds,
)
from neardup.records import MIN_BLOCK, Assessment, Candidate, Kind, Language, PairedStory, Signals

from tests.support.builders import text_of_words
from tests.support.languages import HINDI, MARATHI, ODIA, SAMPLED, TELUGU, TEXTS
from tests.support.sample_texts import STORIES, transliterated
from tests.support.sampling import CHAOS, count_examples

unhurried = settings(deadline=None)
vocabulary = st.sampled_from([word for text in TEXTS.values() for word in tokenize(text)][:12])
stories = st.lists(vocabulary, min_size=1, max_size=40)
shares = st.none() | st.floats(0, 1)
copied_words = st.fixed_dictionaries({}, optional={COPIED_WORDS: st.integers(0, 200)})
signals = st.builds(Signals, st.integers(0, 128), st.booleans(), shares, shares, shares, extra=copied_words)


def word_pairs(words: list[bytes]) -> set[tuple[bytes, ...]]:
    return set(pairwise(words)) or {tuple(words)}


def run_by_run(a: list[bytes], b: list[bytes]) -> int:
    longest = 0
    for i in range(len(a)):
        for j in range(len(b)):
            n = 0
            while i + n < len(a) and j + n < len(b) and a[i + n] == b[j + n]:
                n += 1
            longest = max(longest, n)
    return longest


def paired_story(number: int, language: Language, words: list[bytes]) -> PairedStory:
    made = fingerprint(words)
    return PairedStory(number, language, None, made.text_hash, made.simhash, made.signature, made.words, made.shingles)


@unhurried
@given(
    st.lists(st.tuples(st.sampled_from([HINDI, TELUGU, MARATHI]), stories, st.booleans()), min_size=2, max_size=5),
    st.sampled_from([NO_HASHES, hash_passages(text_of_words(tokenize(TEXTS[HINDI])).word_hashes)]),
)
def test_pairs_are_assessed_together_as_they_are_alone(
    some: list[tuple[Language, list[bytes], bool]], common: PassageHashes
) -> None:
    sides = [paired_story(n, language, words) for n, (language, words, _) in enumerate(some)]
    texts = [None if is_gone else text_of_words(words) for _, words, is_gone in some]
    pairs = [
        ComparedPair(Candidate(sides[a], sides[b]), texts[a], texts[b]) for b in range(len(some)) for a in range(b)
    ]
    together = assess_all(pairs, lambda _: Thresholds(), lambda _: common)
    assert list(map(repr, together)) == [repr(assess(*pair, Thresholds(), common)) for pair in pairs]


@unhurried
@given(st.integers(20, 60), st.data())
def test_the_order_of_two_texts_does_not_matter(own_words: int, data: st.DataObject) -> None:
    before = data.draw(st.integers(0, own_words))
    disclaimer = text("p", 120)
    common = hash_passages(text_of_words(disclaimer).word_hashes)
    a, b = disclaimer + text("a", own_words), text("b", before) + disclaimer + text("c", own_words - before)
    found, exchanged = assessed(a, b, common), assessed(b, a, common)
    assert (found and (found.kind, found.signals.extra)) == (exchanged and (exchanged.kind, exchanged.signals.extra))


@pytest.mark.parametrize("words", [MIN_BLOCK, 15, NEAR_MISS_WORDS, 75])
def test_a_passage_is_one_from_the_words_on_that_are_set(words: int) -> None:
    thresholds = Thresholds(passage_words=words)
    for copied, kind in ((words - 1, None), (words, PASSAGE)):
        a, b = text("a", 100) + text("q", copied) + text("b", 100), text("c", 100) + text("q", copied) + text("d", 100)
        pair = Candidate(side(1, a), side(2, b))
        found = assess(pair, text_of_words(a), text_of_words(b), thresholds)
        assert (found and found.kind) == kind, f"{copied} copied words"


@pytest.mark.parametrize("words", [1, 80, 400])
def test_an_assessment_survives_pickling(words: int) -> None:
    story = text_of_words([f"w{n}".encode() for n in range(words)])
    found = examine(story, story, 0, Thresholds(), is_of_one_language=True)
    assert repr(pickle.loads(pickle.dumps(found))) == repr(found)


@unhurried
@given(stories, stories)
def test_scores_equal_those_of_word_pair_sets(a: list[bytes], b: list[bytes]) -> None:
    first, second = word_pairs(a), word_pairs(b)
    found = measure(text_of_words(a), text_of_words(b), 0)
    assert found.jaccard == len(first & second) / len(first | second)
    assert found.containment_a == len(first & second) / len(first)
    assert found.containment_b == len(first & second) / len(second)
    assert not found.estimated


@unhurried
@given(stories, stories)
def test_a_copy_by_its_shingles_shows_what_is_copied(a: list[bytes], b: list[bytes]) -> None:
    found = examine(text_of_words(a), text_of_words(b), 0, Thresholds(), is_of_one_language=True)
    if found.kind in {SIMILAR, PARTIAL} and min(len(a), len(b)) > 1:
        assert count_words(found.spans_a) and count_words(found.spans_b)


@pytest.mark.parametrize("language", SAMPLED)
def test_a_poem_with_its_lines_in_another_order_is_shown_as_a_copy(language: Language) -> None:
    words = list(dict.fromkeys(tokenize(" ".join(STORIES[language]))))[:60]
    lines = [words[at : at + 5] for at in range(0, len(words), 5)]
    found = assessed(words, [word for line in reversed(lines) for word in line])
    assert found is not None and found.kind == NEAR
    assert (found.spans_a.tolist(), found.spans_b.tolist()) == ([[0, len(words)]], [[0, len(words)]])


@unhurried
@given(stories, stories)
def test_longest_run_equals_brute_force(a: list[bytes], b: list[bytes]) -> None:
    assert (
        measure_longest_run(text_of_words(a).word_hashes, text_of_words(b).word_hashes)
        == run_by_run(a, b)
        == measure_longest_run(text_of_words(b).word_hashes, text_of_words(a).word_hashes)
    )


@pytest.mark.parametrize("language", SAMPLED)
def test_copied_passage_is_the_longest_run(language: Language) -> None:
    words = [f"{word.decode()}{n}".encode() for n in range(20) for word in tokenize(TEXTS[language])]
    other = [b"x" + word for word in words]
    copy = other[:30] + words[40:117] + other[60:]
    found = measure(text_of_words(words), text_of_words(copy), 0)
    assert found.longest_run_words == 77
    assert found.containment_a == pytest.approx(76 / len(word_pairs(words)))


@given(signals, st.integers(0, 7), st.floats(0.01, 1), st.floats(0.01, 1), st.integers(12, 200))
def test_pair_gets_the_first_kind_that_holds(
    found: Signals, hamming: int, jaccard: float, containment: float, words: int
) -> None:
    holds = {
        EXACT: found.same_text,
        NEAR: found.hamming <= hamming,
        SIMILAR: found.jaccard is not None and found.jaccard >= jaccard,
        PARTIAL: max(found.containment_a or 0, found.containment_b or 0) >= containment
        and found.extra.get(COPIED_WORDS, 1) > 0,
        PASSAGE: found.extra.get(COPIED_WORDS, 0) >= words,
    }
    want = next((kind for kind in list_kinds() if holds.get(kind)), None)
    assert (
        find_kind(found, Thresholds(hamming=hamming, jaccard=jaccard, containment=containment, passage_words=words))
        == want
    )


def measure(a: Text, b: Text, bits: int) -> Signals:
    return examine(a, b, bits, Thresholds(), is_of_one_language=True).signals


def side(story_id: int, words: list[bytes], language: Language = ODIA) -> PairedStory:
    made = fingerprint(words)
    return PairedStory(
        story_id, language, None, made.text_hash, made.simhash, made.signature, made.words, made.shingles
    )


def text(seed: str, n: int = 200) -> list[bytes]:
    return [f"{seed}{k % 150}".encode() for k in range(n)]


def finding_of(a: list[bytes], b: list[bytes], *, gone: bool = False) -> tuple[Kind | None, Signals] | None:
    pair = Candidate(side(1, a), side(2, b))
    found = assess(pair, text_of_words(a), None if gone else text_of_words(b), Thresholds())
    return (found.kind, found.signals) if found else None


def test_each_kind_follows_from_its_definition() -> None:
    story = text("a")
    assert finding_of(story, story) == (EXACT, Signals(0, True, 1.0, 1.0, 1.0, 200, extra={COPIED_WORDS: 200}))
    similar = finding_of(story, story[:120] + text("b", 20))
    assert similar is not None and similar[0] == SIMILAR
    partial = finding_of(story, story[:140] + text("b", 900)[:150] + text("c"))
    assert partial is not None and partial[0] == PARTIAL
    passage = finding_of(text("c", 100) + story[:100] + text("d"), text("e") + story[:100] + text("f", 300))
    assert passage is not None and passage[0] == PASSAGE
    assert (passage[1].extra, passage[1].longest_run_words) == ({COPIED_WORDS: 100}, 100)
    assert finding_of(story, text("c")) is None


@pytest.mark.parametrize("language", SAMPLED)
def test_a_greeting_makes_no_copies_of_short_texts_but_a_short_text_in_another_is_one(language: Language) -> None:
    words = tokenize(" ".join(STORIES[language]))
    greeting, own, other = words[:30], words[40:65], words[100:125]
    first, second = text_of_words(greeting + own), text_of_words(greeting + other)
    assert examine(first, second, 64, Thresholds(), is_of_one_language=True).kind is None
    whole = examine(text_of_words(greeting), second, 64, Thresholds(), is_of_one_language=True)
    assert whole.kind in {SIMILAR, PARTIAL}, whole.signals


def test_passage_too_short_for_a_flag_is_a_near_miss() -> None:
    story = text("a")
    found = finding_of(text("c", 200) + story[:60], text("e") + story[:60])
    assert found is not None and found[0] is None
    assert (found[1].extra, found[1].containment < NEAR_MISS) == ({COPIED_WORDS: 60}, True)
    assert finding_of(text("c", 200) + story[:20], text("e") + story[:20]) is not None
    assert finding_of(text("c", 200) + story[:15], text("e") + story[:15]) is None


def assessed(
    a: list[bytes], b: list[bytes], common: PassageHashes = NO_HASHES, labels: tuple[Language, Language] = (ODIA, ODIA)
) -> Assessment | None:
    pair = Candidate(side(1, a, labels[0]), side(2, b, labels[1]))
    return assess(pair, text_of_words(a), text_of_words(b), Thresholds(), common)


@settings(deadline=None, max_examples=count_examples(100 * CHAOS))
@given(st.sampled_from(SAMPLED), st.data())
def test_two_labels_change_the_kind_alone_in_one_script_and_a_passage_is_no_copy(
    language: Language, data: st.DataObject
) -> None:
    words = [f"{word.decode()}{n}".encode() for word in tokenize(TEXTS[language]) for n in range(12)]
    places = st.lists(st.integers(0, len(words) - 1), min_size=1, max_size=3)
    a, b = ([word for place in data.draw(places) for word in words[place : place + 90]] for _ in "ab")
    first, second = assessed(a, b), assessed(a, b, labels=(language, HINDI if language == MARATHI else MARATHI))
    if first is None or second is None:
        assert first is None and second is None
    else:
        assert second.kind == (None if first.kind in {None, PASSAGE} else TRANSLITERATED), (
            f"{first.kind} became {second.kind}"
        )
        assert second.signals == replace(first.signals, extra={**first.signals.extra, LABELS: 2})
        assert (second.spans_a.tolist(), second.spans_b.tolist()) == (first.spans_a.tolist(), first.spans_b.tolist())


@pytest.mark.parametrize("language", SAMPLED)
def test_a_copy_under_another_language_is_found_with_every_fifth_word_replaced(language: Language) -> None:
    story = tokenize(" ".join(STORIES[language]))
    copy = [b"x" if n % 5 == 0 else word for n, word in enumerate(story)]
    found = assessed(story, copy, labels=(language, HINDI if language == MARATHI else MARATHI))
    assert found is not None and found.kind == TRANSLITERATED, f"{language}: {found and found.signals}"


def test_a_text_in_two_scripts_is_compared_by_its_skeleton() -> None:
    story = tokenize(STORIES[ODIA][0])
    copy = tokenize(transliterated(STORIES[ODIA][0], ODIA, TELUGU))
    found = assessed(story, copy, labels=(ODIA, TELUGU))
    assert found is not None and (found.kind, found.signals.extra[LANGUAGES]) == (TRANSLITERATED, 2)


def test_common_passage_does_not_count() -> None:
    prayer, copy = text("p", 110), text("q", 90)
    common = hash_passages(text_of_words(prayer).word_hashes)
    a, b = text("a", 140) + text("c") + prayer, prayer + text("b", 140) + text("d")
    found = assessed(a, b, NO_HASHES)
    assert found is not None and found.kind == PASSAGE
    assert assessed(a, b, common) is None
    found = assessed(a + copy, copy + b, common)
    assert found is not None and found.kind == PASSAGE
    assert (found.signals.extra[COPIED_WORDS], found.signals.extra[COMMON_WORDS]) == (90, 110)
    assert (found.spans_a.tolist(), found.spans_b.tolist()) == ([[450, 540]], [[0, 90]])


def test_assessment_has_the_copied_words_of_both_texts() -> None:
    story = text("a")
    found = assessed(story, story[:120] + text("b", 20) + story[120:], NO_HASHES)
    assert found is not None and found.kind == SIMILAR
    assert found.spans_a.tolist() == [[0, 120], [120, 200]]
    assert found.spans_b.tolist() == [[0, 120], [140, 220]]
    whole = assess(Candidate(side(1, story), side(2, story)), None, None, Thresholds())
    assert whole is not None and whole.spans_a.tolist() == whole.spans_b.tolist() == [[0, 200]]
    estimated = assess(Candidate(side(1, story), side(2, story[:190])), text_of_words(story), None, Thresholds())
    assert estimated is not None and estimated.kind is not None and len(estimated.spans_a) == 0


def test_near_miss_has_its_scores() -> None:
    story = text("a")
    found = finding_of(story, story[:60] + text("b", 140))
    assert found is not None and found[0] is None
    assert NEAR_MISS <= (found[1].containment_a or 0) < 0.5


def test_signatures_estimate_scores_of_missing_texts() -> None:
    story = text("a")
    copy = story[:110] + text("b", 20) + story[130:]
    found = finding_of(story, copy, gone=True)
    assert found is not None
    kind, estimate = found
    assert kind == SIMILAR
    assert estimate.estimated and estimate.longest_run_words is None
    exact = measure(text_of_words(story), text_of_words(copy), 0)
    assert abs((estimate.jaccard or 0) - (exact.jaccard or 0)) < 0.2
    assert finding_of(story, text("c"), gone=True) is None


def test_simhash_alone_decides_without_text_and_signature() -> None:
    words = text("a", 15)
    assert finding_of(words, text("b", 15), gone=True) is None
    assert finding_of(words, words, gone=True) == (EXACT, Signals(0, True, 1.0, 1.0, 1.0, 15, extra={COPIED_WORDS: 15}))


words = st.lists(st.sampled_from([f"w{n}".encode() for n in range(30)]), min_size=1, max_size=60)


def common_of(passage: list[bytes]) -> PassageHashes:
    """All passage hashes that stories which hold this passage may have in common."""
    held = text_of_words(passage)
    return np.union1d(hash_passages(held.word_hashes), hash_skeleton_of_text(b" ".join(passage)))


def compared(a: list[bytes], b: list[bytes], common: PassageHashes) -> Assessment:
    return examine(text_of_words(a), text_of_words(b), 50, Thresholds(), common, is_of_one_language=True)


def kind(a: list[bytes], b: list[bytes], common: PassageHashes) -> Kind | None:
    return compared(a, b, common).kind


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
    fewer, found = (examine(a, b, 50, Thresholds(), hashes, is_of_one_language=True) for hashes in (common, more))
    assert repr(fewer) == repr(found), "a passage that only one of them holds decides on the pair"


@pytest.mark.parametrize("language", SAMPLED)
def test_stories_alike_as_a_whole_count_all_words_and_parts_none_that_many_share(language: Language) -> None:
    popular = tokenize(" ".join(STORIES[language]))[:200]
    common = common_of(popular)
    edited = [b"edited%d" % n if n % 17 == 8 else word for n, word in enumerate(popular)]
    for copy, expected in ((edited, SIMILAR), ([*popular, *(b"more%d" % n for n in range(220))], PARTIAL)):
        found = compared(popular, copy, common)
        assert found.kind == expected
        assert found.signals.extra[COPIED_WORDS] > 150, "words of a common passage are not counted in a whole copy"
        assert POPULAR in found.signals.extra
    half = compared(
        [*popular[:100], *(b"a%d" % n for n in range(80))], [*popular[:100], *(b"b%d" % n for n in range(80))], common
    )
    assert half.kind is None and half.signals.extra[COPIED_WORDS] == 0
