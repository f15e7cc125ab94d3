"""Laws of the similarity report: exactly the words that stand in a source are marked, each as part of one source; the
words that verification leaves out are shown as common; and the text is shown whole.
"""

import sqlite3
import unicodedata
from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.word_hashes import GRAM, WINDOW, sample_grams
from neardup.core.text.normalize import locate_words, tokenize
from neardup.core.verify.alignment import find_copied
from neardup.core.verify.spans import count_words, union_of_spans
from neardup.core.verify.text import Text
from neardup.ledger import passages
from neardup.ledger.passages import CommonPassage
from neardup.ledger.similarities import Similarity, Source, leave_out
from neardup.moderation.evidence.alignment import Fold, Highlight, Paragraph
from neardup.moderation.evidence.story_report import COLOURS, StoryReport, find_common_words, make_story_report
from neardup.query.compare import LoadedStory
from neardup.records import Spans

from tests.support.builders import ledger_in_memory
from tests.support.languages import HINDI, TAMIL, TEXTS, URDU

WORDS = 60


@st.composite
def spans(draw: st.DrawFn) -> Spans:
    """Ascending, disjoint spans of a text of WORDS words."""
    bounds = sorted(draw(st.sets(st.integers(0, WORDS), max_size=8)))
    return np.array(bounds[: len(bounds) // 2 * 2], np.int32).reshape(-1, 2)


def similarity(of_sources: list[Spans], words: int = WORDS) -> Similarity:
    sources = [
        Source(
            n,
            100 + n,
            None,
            None,
            None,
            None,
            "partial",
            "open",
            count_words(found),
            count_words(found) / words,
            found,
            found,
        )
        for n, found in enumerate(of_sources)
    ]
    sources.sort(key=lambda source: (-source.copied_words, source.story_id))
    everything = union_of_spans(np.concatenate([np.empty((0, 2), np.int32), *of_sources]))
    copied = count_words(everything)
    return Similarity(7, HINDI, None, None, None, None, words, copied, copied / words, everything, tuple(sources))


def story_of(text: str) -> LoadedStory:
    return LoadedStory(Text(text), {})


TEXT = " ".join(f"शब्द{n}" if n % 9 else f"शब्द{n}\n" for n in range(WORDS))
NOTHING = np.zeros(WORDS, bool)
many_spans = st.lists(spans(), max_size=COLOURS + 3)
masks = st.lists(st.booleans(), min_size=WORDS, max_size=WORDS).map(np.array)


def lines_of(report: StoryReport) -> list[Paragraph]:
    return [line for block in report.blocks for line in (block.paragraphs if isinstance(block, Fold) else [block])]


def marked_words(report: StoryReport, mark: Highlight) -> set[int]:
    """The numbers of the words in the fragments with this mark."""
    found = []
    for line in lines_of(report):
        for fragment in line.fragments:
            if fragment.highlight is mark:
                found += [int(word.removeprefix("शब्द")) for word in fragment.text.split()]
    assert len(found) == len(set(found)), "a word is marked twice"
    return set(found)


def words_of(found: Spans) -> set[int]:
    return {word for start, end in found.tolist() for word in range(start, end)}


@given(many_spans, masks)
def test_marked_words_are_those_of_the_sources(of_sources: list[Spans], common: np.ndarray) -> None:
    found = similarity(of_sources)
    report = make_story_report(found, story_of(TEXT), common)
    copied = words_of(found.spans)
    assert marked_words(report, Highlight.COPIED) == copied
    assert marked_words(report, Highlight.COMMON) == set(np.flatnonzero(common).tolist()) - copied
    assert report.has_common == bool(marked_words(report, Highlight.COMMON))
    shown = "".join(fragment.text for line in lines_of(report) for fragment in line.fragments)
    assert shown == unicodedata.normalize("NFC", TEXT)


@given(many_spans)
def test_words_in_several_sources_belong_to_the_largest(of_sources: list[Spans]) -> None:
    found = similarity(of_sources)
    report = make_story_report(found, story_of(TEXT), NOTHING)
    shares = [source.about.share for source in report.sources]
    assert shares == sorted(shares, reverse=True)
    seen = set()
    for number, passage in enumerate(report.passages, 1):
        assert passage.number == number
        words = set(range(passage.word, passage.word + passage.words))
        holders = [
            matched_source.number for matched_source in report.sources if words & words_of(matched_source.about.spans)
        ]
        assert holders[0] == passage.source.number
        assert words <= words_of(passage.source.about.spans)
        halves = [
            matched_source
            for matched_source in report.sources
            if 2 * len(words & words_of(matched_source.about.spans)) > len(words)
        ]
        assert passage.others == tuple(
            matched_source.number for matched_source in halves if matched_source is not passage.source
        )
        seen |= words
    assert seen == words_of(found.spans)
    for source in report.sources:
        own = [passage.number for passage in report.passages if passage.source is source]
        assert source.passage == (own[0] if own else None)
        assert source.colour == (source.number if source.number <= COLOURS else 0)
        assert source.word == (int(source.about.spans[0, 0]) if len(source.about.spans) else None)


@given(many_spans)
def test_bars_cover_what_is_copied(of_sources: list[Spans]) -> None:
    found = similarity(of_sources)
    report = make_story_report(found, None, None)
    assert abs(sum(bar.length for bar in report.bars) - 1000 * found.similarity) < 1
    for source in report.sources:
        assert abs(sum(bar.length for bar in source.bars) - 1000 * source.about.share) < 1
        assert {bar.colour for bar in source.bars} <= {source.colour}


def test_story_without_its_compared_text_has_no_marks() -> None:
    found = similarity([np.array([[3, 9]], np.int32)])
    gone = make_story_report(found, None, None)
    assert (gone.blocks, [source.passage for source in gone.sources]) == ((), [None])
    changed = make_story_report(found, story_of("एक दो तीन"), None)
    assert [[fragment.highlight for fragment in line.fragments] for line in lines_of(changed)] == [[Highlight.PLAIN]]


def test_marks_in_a_script_from_right_to_left_keep_the_text() -> None:
    text = TEXTS[URDU]
    words = len(tokenize(text))
    found = similarity([np.array([[0, words // 2]], np.int32)], words)
    report = make_story_report(found, story_of(text), np.zeros(words, bool))
    assert "".join(fragment.text for line in lines_of(report) for fragment in line.fragments) == locate_words(text).text


@given(many_spans, st.sets(st.integers(100, 100 + COLOURS + 3)))
def test_sources_that_are_left_out_count_nothing(of_sources: list[Spans], left_out: set[int]) -> None:
    found = similarity(of_sources)
    rest = leave_out(found, left_out)
    held = [source for source in found.sources if source.story_id not in left_out]
    words = {word for source in held for start, end in source.spans.tolist() for word in range(start, end)}
    assert {word for start, end in rest.spans.tolist() for word in range(start, end)} == words
    assert (rest.copied_words, rest.similarity) == (len(words), len(words) / WORDS)
    report = make_story_report(rest, story_of(TEXT), NOTHING)
    assert marked_words(report, Highlight.COPIED) == words
    assert [source.about.story_id for source in report.sources] == [source.story_id for source in found.sources]


REACH = WINDOW + GRAM  # words: more than lie between two samples


def story(seed: int, words: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, words, np.uint64)


PRAYER = story(1, 200)


@pytest.fixture(scope="module")
def db() -> Iterator[sqlite3.Connection]:
    """A ledger in which a prayer of 200 words is common in Hindi."""
    with closing(ledger_in_memory()) as db:
        passages.record_common(db, [CommonPassage(HINDI, int(gram), 60, None, 1) for gram in sample_grams(PRAYER)[0]])
        yield db


@settings(deadline=None)
@given(before=st.integers(0, 100), after=st.integers(0, 100), seed=st.integers(2, 99))
def test_prayer_within_a_story_is_common(db: sqlite3.Connection, before: int, after: int, seed: int) -> None:
    own = story(seed, before + after)
    words = np.concatenate((own[:before], PRAYER, own[before:]))
    found = np.flatnonzero(find_common_words(db, HINDI, words))
    assert abs(found[0] - before) < REACH
    assert abs(found[-1] - before - 199) < REACH
    assert len(found) == found[-1] - found[0] + 1
    assert not find_common_words(db, TAMIL, words).any(), "a passage is common in its language"


@given(st.integers(0, 9), st.integers(0, 90), st.integers(0, 90))
def test_text_of_a_span_is_common_where_its_copied_words_are_left_out(
    db: sqlite3.Connection, seed: int, before: int, after: int
) -> None:
    own = story(seed + 9, before + after)
    words = np.concatenate((own[:before], PRAYER, own[before:]))
    found = find_copied(words, words.copy(), passages.read_common(db, HINDI))
    left = np.ones(len(words), bool)
    for start, end in found.spans_a.tolist():
        left[start:end] = False
    assert left.tolist() == find_common_words(db, HINDI, words).tolist()


def test_short_text_has_no_common_passage(db: sqlite3.Connection) -> None:
    for words in range(GRAM):
        assert not find_common_words(db, HINDI, PRAYER[:words]).any()
