"""Laws: joined, the pieces of a story are its text; no piece begins or ends within a word or a character; every passage
reads the same in both; and what is neither changed nor other text is said in both stories, in the same order.
"""

import unicodedata
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.version import TEXTS
from neardup.core.fingerprint.word_hashes import hashed
from neardup.core.text.normalize import located, tokens
from neardup.core.verify.passages import MIN_PASSAGE, passages
from neardup.moderation.evidence.alignment import (
    CONTEXT_WORDS,
    LONGEST_EDIT,
    WORTH_FOLDING,
    Mark,
    Stretch,
    chains,
    stretches,
)
from neardup.moderation.evidence.pieces import SHOWN_PAIRS, Fold, Paragraph, Segment, Shared, Side, shared
from neardup.query.evidence import WithText, evidence
from neardup.records import Language

from tests.support.compared_stories import (
    THRESHOLDS,
    every_language,
    every_planted_pair,
    grapheme_texts,
    sample,
    with_text,
)
from tests.support.graphemes import boundaries
from tests.support.sample_texts import AROUND, story

BOTH = {Mark.COPIED, Mark.KEPT}
texts_of_few_words = st.lists(st.sampled_from("abcdefgh"), max_size=60).map(lambda words: [w.encode() for w in words])


def compared(a: WithText, b: WithText) -> Shared:
    return shared(evidence(a, b, THRESHOLDS), a, b)


def lines(side: Side) -> list[Paragraph]:
    return [line for block in side.blocks for line in (block.paragraphs if isinstance(block, Fold) else [block])]


def segments(side: Side) -> list[Segment]:
    return [segment for line in lines(side) for segment in line.segments]


def assert_shown(found: Shared, stories: tuple[WithText, ...]) -> None:
    numbers: list[list[int | None]] = []
    for side, told_ in zip((found.a, found.b), stories, strict=True):
        text = unicodedata.normalize("NFC", told_.text)
        pieces = segments(side)
        assert "".join(piece.text for piece in pieces) == text, "the pieces are not the text"
        edges = {0}
        for piece in pieces:
            edges.add(max(edges) + len(piece.text))
        assert edges <= boundaries(text), "a piece tears a character"
        words = located(text)
        inside = {at for start, end in zip(words.starts, words.ends, strict=True) for at in range(start + 1, end)}
        assert not edges & inside, "a piece tears a word"
        numbers.append([piece.passage for piece in pieces if piece.begins])
        assert {piece.passage for piece in pieces if piece.mark is Mark.COPIED} <= set(numbers[-1])
    assert numbers[0] == list(range(1, len(numbers[0]) + 1)), "passages are numbered by A"
    assert sorted(n or 0 for n in numbers[1]) == numbers[0], "and each stands in B once"
    for pair in found.pairs:
        for excerpt, told_ in zip((pair.a, pair.b), stories, strict=True):
            for run in "".join("\0" if one.mark is Mark.ELIDED else one.text for one in excerpt).split("\0"):
                assert run in unicodedata.normalize("NFC", told_.text)


@every_planted_pair
@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_planted_copies_are_shown_whole(pair: dict[str, Any], form: str) -> None:
    a, b = (with_text(unicodedata.normalize(form, sample(pair[side]).text)) for side in "ab")  # type: ignore[arg-type]
    found = compared(a, b)
    assert_shown(found, (a, b))
    by_number: list[dict[int | None, list[bytes]]] = []
    for side in (found.a, found.b):
        copied: dict[int | None, list[bytes]] = {}
        for one in segments(side):
            if one.mark is Mark.COPIED:
                copied.setdefault(one.passage, []).extend(tokens(one.text))
        by_number.append(copied)
    assert by_number[0] == by_number[1], "a passage reads otherwise in B"
    assert min(map(len, by_number[0].values())) >= MIN_PASSAGE


@settings(deadline=None)
@given(grapheme_texts, grapheme_texts, grapheme_texts, st.sampled_from(Language))
def test_whatever_stands_in_a_story_nothing_is_torn(before: str, after: str, beside: str, language: Language) -> None:
    copied = f"{beside}{TEXTS[language]}{beside}"
    a, b = with_text(f"{before}{copied}{after} x"), with_text(f"{after}{copied}\n{before} {copied} y")
    assert_shown(compared(a, b), (a, b))


@given(texts_of_few_words, texts_of_few_words)
def test_what_is_not_marked_as_changed_stands_in_both(a: list[bytes], b: list[bytes]) -> None:
    found = sorted(passages(hashed(a).hashes, hashed(b).hashes), key=lambda one: one.start_a)
    both = stretches(found, a, b)
    for marked, words in zip(both, (a, b), strict=True):
        assert all(0 <= one.first < one.end <= len(words) for one in marked)
        assert all(one.end <= other.first for one, other in pairwise(marked)), "stretches overlap"
    said = [
        sorted(tuple(words[one.first : one.end]) for one in marked if one.mark in BOTH)
        for marked, words in zip(both, (a, b), strict=True)
    ]
    assert said[0] == said[1]
    assert [one for chain in chains(found, len(a), len(b)) for one in chain] == found


@every_language
@pytest.mark.parametrize("every", [9, 23])
def test_a_near_copy_shows_its_edits_word_by_word(language: Language, every: int) -> None:
    words = b" ".join(tokens(story(language))).decode().split()
    other = [f"{word}zz" if n % every == every - 1 else word for n, word in enumerate(words)]
    a, b = with_text(" ".join(words)), with_text(" ".join(other))
    found = compared(a, b)
    assert_shown(found, (a, b))
    told_apart = [[one.text for one in segments(side) if one.mark is Mark.CHANGED] for side in (found.a, found.b)]
    places = range(every - 1, len(words), every)
    for shown, said in zip(told_apart, (words, other), strict=True):
        assert [tokens(text) for text in shown] == [tokens(said[n]) for n in places]
    assert not {Mark.PLAIN, Mark.FOLDED} & {one.mark for one in segments(found.a) if tokens(one.text)}


def test_words_put_in_are_changed_on_one_side_only() -> None:
    words = [f"w{n}" for n in range(40)]
    found = compared(with_text(" ".join(words)), with_text(" ".join([*words[:20], "put", "in", *words[20:]])))
    assert [one.mark for one in segments(found.a)] == [Mark.COPIED, Mark.PLAIN, Mark.COPIED]
    assert [one.text for one in segments(found.b) if one.mark is Mark.CHANGED] == ["put in"]


@pytest.mark.parametrize(("words", "edit"), [(LONGEST_EDIT, True), (LONGEST_EDIT + 1, False)])
def test_a_long_insertion_is_other_text(words: int, edit: bool) -> None:
    copied = [f"w{n}".encode() for n in range(200)]
    b = [*copied[:100], *(f"x{n}".encode() for n in range(words)), *copied[100:]]
    found = sorted(passages(hashed(copied).hashes, hashed(b).hashes), key=lambda one: one.start_a)
    assert (Mark.CHANGED in {one.mark for one in stretches(found, copied, b)[1]}) is edit


def test_a_chance_run_of_words_makes_no_edit_of_what_is_around_it() -> None:
    a = b" ".join([b"a%d" % n for n in range(9)] + [b"same"] * 4 + [b"c%d" % n for n in range(9)]).split()
    b = b" ".join([b"b%d" % n for n in range(9)] + [b"same"] * 4 + [b"d%d" % n for n in range(9)]).split()
    found = passages(hashed(a).hashes, hashed(b).hashes)
    assert stretches(found, a, b) == ([Stretch(9, 13, Mark.COPIED, 1)], [Stretch(9, 13, Mark.COPIED, 1)])


def test_a_character_of_two_words_is_shown_once() -> None:
    a, b = (with_text(f"one two three a\U0001f3fd\u0301{end} five six seven eight") for end in "bc")
    found = compared(a, b)
    assert_shown(found, (a, b))
    assert Mark.CHANGED in {one.mark for one in segments(found.a)}


@every_language
def test_long_other_text_is_folded_between_words_of_context(language: Language) -> None:
    copied = TEXTS[language].split()
    others = AROUND[language].others[0]
    a = with_text(" ".join([*others[:150], *copied]))
    b = with_text(" ".join(copied))
    found = compared(a, b)
    assert_shown(found, (a, b))
    [fold] = [block for block in found.a.blocks if isinstance(block, Fold)]
    folded = tokens("".join(one.text for line in fold.paragraphs for one in line.segments))
    assert len(folded) == fold.words >= WORTH_FOLDING
    assert folded == a.words[CONTEXT_WORDS : CONTEXT_WORDS + fold.words]


def test_a_fold_begins_and_ends_behind_the_sign_on_a_word() -> None:
    copied = " ".join(f"w{n}" for n in range(30))
    before, fold, after = compared(
        with_text(" ".join(f"x{n}," for n in range(100)) + copied), with_text(copied)
    ).a.blocks
    assert isinstance(before, Paragraph) and isinstance(fold, Fold) and isinstance(after, Paragraph)
    assert before.segments[-1].text.endswith(f"x{CONTEXT_WORDS - 1},")
    assert fold.paragraphs[-1].segments[-1].text.endswith(f"x{99 - CONTEXT_WORDS},")
    assert after.segments[0].text.startswith(f" x{100 - CONTEXT_WORDS},")


def test_of_stories_that_share_nothing_nothing_is_marked_or_folded() -> None:
    a, b = sample(4107000), sample(4107001)
    found = compared(a, b)
    assert_shown(found, (a, b))
    assert {one.mark for side in (found.a, found.b) for one in segments(side)} == {Mark.PLAIN}
    assert (found.pairs, found.a.bars) == ((), ())


def test_pairs_hold_every_passage_and_the_edits_between() -> None:
    words = [f"w{n}" for n in range(300)]
    other = [f"x{n}" if n % 10 == 5 else word for n, word in enumerate(words)]
    a, b = with_text(" ".join(words)), with_text(" ".join(other))
    found = compared(a, b)
    assert found.more == 0
    assert [pair.first for pair in found.pairs] == [1, *(pair.last + 1 for pair in found.pairs[:-1])]
    assert found.pairs[-1].last == max(one.passage or 0 for one in segments(found.a))
    for pair in found.pairs[:-1]:
        assert Mark.CHANGED in {one.mark for one in pair.a} & {one.mark for one in pair.b}
    assert sum(pair.words for pair in found.pairs) == sum(w == o for w, o in zip(words, other, strict=True))


def test_of_many_pairs_the_longest_are_shown_and_the_rest_is_counted() -> None:
    copied = [[f"w{n}x{place}" for place in range(50 + n)] for n in range(SHOWN_PAIRS + 5)]
    found = compared(
        *(with_text(" ".join(word for part in parts for word in part)) for parts in (copied, copied[::-1]))
    )
    assert found.more == 5
    assert [pair.words for pair in found.pairs] == list(range(55, 50 + len(copied)))


def test_bars_show_where_passages_stand() -> None:
    copied = " ".join(f"w{n}" for n in range(10))
    found = compared(with_text(f"{copied} {' '.join('abcdefghij')}"), with_text(f"{' '.join('klmnopqrst')} {copied}"))
    assert [(bar.at, bar.length) for bar in found.a.bars] == [(0, 500)]
    assert [(bar.at, bar.length) for bar in found.b.bars] == [(500, 500)]
