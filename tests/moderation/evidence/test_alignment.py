"""Laws: the fragments of a story, joined, are its text; no fragment boundary is inside a word or a grapheme cluster;
every passage is the same in both stories; and the highlighted words are those that count as copied.
"""

import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.core.text.normalize import locate_words, tokenize
from neardup.core.verify.alignment import MAX_GAP, MIN_RESUMED
from neardup.moderation.evidence.alignment import (
    CONTEXT_WORDS,
    MAX_PASSAGE_PAIRS,
    MIN_FOLDED_WORDS,
    AlignedStories,
    Fold,
    Fragment,
    Highlight,
    Paragraph,
    Side,
    align_stories,
    list_stretches,
)
from neardup.query.compare import LoadedStory, find_evidence
from neardup.records import Language

from tests.support.compared_stories import THRESHOLDS, every_language, every_planted_pair, sample, story_of, wild_texts
from tests.support.graphemes import boundaries
from tests.support.languages import TEXTS
from tests.support.sample_texts import AROUND, story

texts_of_few_words = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60)


def compared(a: LoadedStory, b: LoadedStory) -> AlignedStories:
    return align_stories(find_evidence(a, b, THRESHOLDS), a, b)


def lines(side: Side) -> list[Paragraph]:
    return [line for block in side.blocks for line in (block.paragraphs if isinstance(block, Fold) else [block])]


def fragments(side: Side) -> list[Fragment]:
    return [fragment for line in lines(side) for fragment in line.fragments]


def assert_shown(found: AlignedStories, stories: tuple[LoadedStory, ...]) -> None:
    numbers: list[list[int | None]] = []
    for side, story_ in zip((found.a, found.b), stories, strict=True):
        text = unicodedata.normalize("NFC", story_.text.written)
        shown = fragments(side)
        assert "".join(fragment.text for fragment in shown) == text, "the fragments do not add up to the text"
        edges = {0}
        for fragment in shown:
            edges.add(max(edges) + len(fragment.text))
        assert edges <= boundaries(text), "a fragment boundary is inside a grapheme cluster"
        words = locate_words(text)
        inside = {at for start, end in zip(words.starts, words.ends, strict=True) for at in range(start + 1, end)}
        assert not edges & inside, "a fragment boundary is inside a word"
        numbers.append([fragment.passage for fragment in shown if fragment.begins])
        copied = {fragment.passage for fragment in shown if fragment.highlight is Highlight.COPIED}
        assert copied <= {*numbers[-1], None}, "only a span of skeletons has no number"
    assert numbers[0] == list(range(1, len(numbers[0]) + 1)), "passages are not numbered in A's order"
    assert sorted(n or 0 for n in numbers[1]) == numbers[0], "a passage is not in B exactly once"
    for pair in found.pairs:
        for excerpt, story_ in zip((pair.a, pair.b), stories, strict=True):
            for run in "".join("\0" if part.highlight is Highlight.ELIDED else part.text for part in excerpt).split(
                "\0"
            ):
                assert run in unicodedata.normalize("NFC", story_.text.written)


@every_planted_pair
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_planted_copies_are_shown_whole(pair: dict[str, Any], form: str) -> None:
    a, b = (story_of(unicodedata.normalize(form, sample(pair[side]).text.written)) for side in "ab")  # type: ignore[arg-type]
    found = compared(a, b)
    assert_shown(found, (a, b))
    by_number: list[dict[int | None, list[bytes]]] = []
    for side in (found.a, found.b):
        copied: dict[int | None, list[bytes]] = {}
        for fragment in fragments(side):
            if fragment.highlight is Highlight.COPIED:
                copied.setdefault(fragment.passage, []).extend(tokenize(fragment.text))
        by_number.append(copied)
    assert by_number[0] == by_number[1], "a passage has other words in B"
    assert min(map(len, by_number[0].values())) >= MIN_RESUMED


@settings(deadline=None)
@given(wild_texts, wild_texts, wild_texts, st.sampled_from(LANGUAGES))
def test_text_is_never_cut_inside_a_character(before: str, after: str, beside: str, language: Language) -> None:
    copied = f"{beside}{TEXTS[language]}{beside}"
    a, b = story_of(f"{before}{copied}{after} x"), story_of(f"{after}{copied}\n{before} {copied} y")
    assert_shown(compared(a, b), (a, b))


@settings(deadline=None)
@given(texts_of_few_words, texts_of_few_words)
def test_highlighted_words_are_those_that_count_as_copied(a: list[str], b: list[str]) -> None:
    facts = find_evidence(story_of(" ".join(a)), story_of(" ".join(b)), THRESHOLDS)
    copied = []
    for words, spans, share, highlighted in zip(
        (a, b), (facts.spans_a, facts.spans_b), facts.shares.values(), list_stretches(facts), strict=True
    ):
        assert all(0 <= stretch.first < stretch.end <= len(words) for stretch in highlighted)
        assert all(before.end <= after.first for before, after in pairwise(highlighted)), "stretches overlap"
        unfolded = [stretch for stretch in highlighted if stretch.highlight is not Highlight.FOLDED]
        shown = [n for stretch in unfolded for n in range(stretch.first, stretch.end)]
        assert shown == [n for start, end in spans for n in range(start, end)], "other words are shown than counted"
        assert share == len(shown) / len(words)
        passages = [stretch for stretch in unfolded if stretch.highlight is Highlight.COPIED]
        copied.append(sorted(tuple(words[stretch.first : stretch.end]) for stretch in passages))
    assert copied[0] == copied[1], "a passage has other words in B"


@every_language
@pytest.mark.parametrize("every", [9, 23])
def test_near_copy_shows_its_edits_word_by_word(language: Language, every: int) -> None:
    words = b" ".join(tokenize(story(language))).decode().split()
    words = words[: len(words) // every * every - 1]  # the last block ends with equal words
    other = [f"{word}zz" if n % every == every - 1 else word for n, word in enumerate(words)]
    a, b = story_of(" ".join(words)), story_of(" ".join(other))
    found = compared(a, b)
    assert_shown(found, (a, b))
    changed = [
        [fragment.text for fragment in fragments(side) if fragment.highlight is Highlight.CHANGED]
        for side in (found.a, found.b)
    ]
    places = range(every - 1, len(words), every)
    for shown, expected in zip(changed, (words, other), strict=True):
        assert [tokenize(text) for text in shown] == [tokenize(expected[n]) for n in places]
    assert not {Highlight.PLAIN, Highlight.FOLDED} & {
        fragment.highlight for fragment in fragments(found.a) if tokenize(fragment.text)
    }


def test_inserted_words_are_changed_on_one_side_only() -> None:
    words = [f"w{n}" for n in range(40)]
    found = compared(story_of(" ".join(words)), story_of(" ".join([*words[:20], "put", "in", *words[20:]])))
    assert [fragment.highlight for fragment in fragments(found.a)] == [
        Highlight.COPIED,
        Highlight.PLAIN,
        Highlight.COPIED,
    ]
    assert [fragment.text for fragment in fragments(found.b) if fragment.highlight is Highlight.CHANGED] == ["put in"]


@pytest.mark.parametrize(("words", "edit"), [(MAX_GAP, True), (MAX_GAP + 1, False)])
def test_long_insertion_is_other_text(words: int, edit: bool) -> None:
    copied = [f"w{n}" for n in range(200)]
    b = [*copied[:100], *(f"x{n}" for n in range(words)), *copied[100:]]
    found = compared(story_of(" ".join(copied)), story_of(" ".join(b)))
    assert (Highlight.CHANGED in {fragment.highlight for fragment in fragments(found.b)}) is edit


def test_grapheme_cluster_across_two_words_is_shown_once() -> None:
    a, b = (
        story_of(f"one two three a\U0001f3fd\u0301{end} five six seven eight nine ten eleven twelve thirteen")
        for end in "bc"
    )
    found = compared(a, b)
    assert_shown(found, (a, b))
    assert Highlight.CHANGED in {fragment.highlight for fragment in fragments(found.a)}


@every_language
def test_long_other_text_is_folded_between_context_words(language: Language) -> None:
    copied = [f"{word}{n}" for n in range(2) for word in TEXTS[language].split()]
    others = AROUND[language].stories[0]
    a = story_of(" ".join([*others[:150], *copied]))
    b = story_of(" ".join(copied))
    found = compared(a, b)
    assert_shown(found, (a, b))
    [fold] = [block for block in found.a.blocks if isinstance(block, Fold)]
    folded = tokenize("".join(fragment.text for line in fold.paragraphs for fragment in line.fragments))
    assert len(folded) == fold.words >= MIN_FOLDED_WORDS
    assert folded == a.text.words[CONTEXT_WORDS : CONTEXT_WORDS + fold.words]


def test_fold_starts_and_ends_after_punctuation() -> None:
    copied = " ".join(f"w{n}" for n in range(30))
    before, fold, after = compared(story_of(" ".join(f"x{n}," for n in range(100)) + copied), story_of(copied)).a.blocks
    assert isinstance(before, Paragraph) and isinstance(fold, Fold) and isinstance(after, Paragraph)
    assert before.fragments[-1].text.endswith(f"x{CONTEXT_WORDS - 1},")
    assert fold.paragraphs[-1].fragments[-1].text.endswith(f"x{99 - CONTEXT_WORDS},")
    assert after.fragments[0].text.startswith(f" x{100 - CONTEXT_WORDS},")


def test_unrelated_stories_have_no_marks_and_no_folds() -> None:
    a, b = sample(4107000), sample(4107001)
    found = compared(a, b)
    assert_shown(found, (a, b))
    assert {fragment.highlight for side in (found.a, found.b) for fragment in fragments(side)} == {Highlight.PLAIN}
    assert (found.pairs, found.a.bars) == ((), ())


def test_pairs_contain_every_passage_and_the_edits_between() -> None:
    words = [f"w{n}" for n in range(300)]
    other = [f"x{n}" if n % 10 == 5 else word for n, word in enumerate(words)]
    a, b = story_of(" ".join(words)), story_of(" ".join(other))
    found = compared(a, b)
    assert found.more == 0
    assert [pair.first for pair in found.pairs] == [1, *(pair.last + 1 for pair in found.pairs[:-1])]
    assert found.pairs[-1].last == max(fragment.passage or 0 for fragment in fragments(found.a))
    for pair in found.pairs[:-1]:
        assert Highlight.CHANGED in {fragment.highlight for fragment in pair.a} & {
            fragment.highlight for fragment in pair.b
        }
    assert sum(pair.words for pair in found.pairs) == sum(w == o for w, o in zip(words, other, strict=True))


def test_longest_pairs_are_shown_and_the_rest_counted() -> None:
    copied = [[f"w{n}x{place}" for place in range(50 + n)] for n in range(MAX_PASSAGE_PAIRS + 5)]
    found = compared(*(story_of(" ".join(word for part in parts for word in part)) for parts in (copied, copied[::-1])))
    assert found.more == 5
    assert [pair.words for pair in found.pairs] == list(range(55, 50 + len(copied)))


def test_bars_show_the_positions_of_passages() -> None:
    copied = " ".join(f"w{n}" for n in range(12))
    found = compared(story_of(f"{copied} {' '.join('abcdefghijkl')}"), story_of(f"{' '.join('mnopqrstuvwx')} {copied}"))
    assert [(bar.at, bar.length) for bar in found.a.bars] == [(0, 500)]
    assert [(bar.at, bar.length) for bar in found.b.bars] == [(500, 500)]
