"""Laws: each passage has the same words in both stories, is at the given position, and is cut only between graphemes;
on a terminal the evidence fits any width, and no text is interpreted as markup or as a control sequence.
"""

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.config import Thresholds
from neardup.core.fingerprint.word_hashes import hash_passages
from neardup.core.languages import LANGUAGES
from neardup.core.publication_order import Side
from neardup.core.text.normalize import tokenize
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import PARTIAL, PASSAGE, REWRITTEN, SIMILAR
from neardup.moderation.evidence.terminal import SHOWN_PASSAGES, render_pair
from neardup.query.compare import CONTEXT_WORDS, Evidence, Excerpt, LoadedStory, find_evidence
from neardup.records import MIN_BLOCK, Language
from rich.cells import cell_len
from rich.console import Console

from tests.support.compared_stories import THRESHOLDS, every_language, every_planted_pair, sample, story_of, wild_texts
from tests.support.graphemes import boundaries
from tests.support.languages import ODIA, TAMIL, TEXTS

PAIR: tuple[Side, Side] = ("a", "b")


def assert_evidence(facts: Evidence, stories: tuple[LoadedStory, LoadedStory]) -> None:
    for side, spans, story in zip(PAIR, (facts.spans_a, facts.spans_b), stories, strict=True):
        copied = {word for start, end in spans for word in range(start, end)}
        assert facts.shares[side] == len(copied) / len(story.text.words)
        whole = story.text.located
        for passage in facts.passages:
            found: Excerpt = getattr(passage, side)
            first, end = found.word, found.word + found.words
            assert set(range(first, end)) <= copied, "a passage does not count as copied"
            excerpt = found.before + found.text + found.after
            start = whole.find_span(max(first - CONTEXT_WORDS, 0), end)[0]
            assert whole.text[start : start + len(excerpt)] == excerpt
            edges = {start, start + len(found.before), start + len(found.before + found.text), start + len(excerpt)}
            assert edges <= boundaries(whole.text), f"{found.text!r} cuts a grapheme"
            assert b" ".join(story.text.words[first:end]) in b" ".join(tokenize(found.text))


@every_planted_pair
def test_passages_of_planted_copies_are_equal_in_both_stories(pair: dict[str, Any]) -> None:
    a, b = sample(pair["a"]), sample(pair["b"])
    facts = find_evidence(a, b, THRESHOLDS)
    assert_evidence(facts, (a, b))
    assert facts.share_a is not None and facts.share_a > 0.4
    for passage in facts.passages:
        assert tokenize(passage.a.text) == tokenize(passage.b.text)
        for side, story in ((passage.a, a), (passage.b, b)):
            first, end = side.word, side.word + passage.words
            assert tokenize(side.before) == story.text.words[max(first - CONTEXT_WORDS, 0) : first]
            assert tokenize(side.text) == story.text.words[first:end]
            assert tokenize(side.after) == story.text.words[end : end + CONTEXT_WORDS]
    assert facts.longest_run_words == facts.passages[0].words
    assert facts.kind == pair["kind"]


@settings(deadline=None)
@given(wild_texts, wild_texts, wild_texts, st.sampled_from(LANGUAGES))
def test_a_passage_in_any_context_is_found_whole(before: str, after: str, beside: str, language: Language) -> None:
    text = " ".join([TEXTS[language]] * 2)
    copied = f"{beside}{text}{beside}"
    a, b = story_of(f"{before}{copied}{after} x"), story_of(f"{after}{copied}{before} y")
    facts = find_evidence(a, b, THRESHOLDS)
    assert_evidence(facts, (a, b))
    assert facts.passages[0].words >= len(tokenize(text)) - 2, "only its first and last word may merge with the context"


@every_language
def test_a_replaced_word_splits_a_passage(language: Language) -> None:
    words = TEXTS[language].split() * 3
    other = [*words[:6], "another", *words[7:]]
    facts = find_evidence(story_of(" ".join(words)), story_of(" ".join(other)), THRESHOLDS)
    assert len(facts.passages) == 2
    assert (facts.share_a, facts.share_b) == (1, 1), "an edit inside a passage belongs to it"
    assert facts.copied_words is not None and facts.copied_words < min(facts.a.words or 0, facts.b.words or 0)


def test_unrelated_stories_share_nothing() -> None:
    facts = find_evidence(sample(4107000), sample(4107001), THRESHOLDS)
    assert (facts.kind, facts.passages, facts.share_a, facts.share_b) == (None, (), 0, 0)


@pytest.mark.parametrize(
    ("times", "earlier"), [((1, 2), "a"), ((2000, 1999), "b"), ((5, 5), None), ((None, 5), None), ((5, None), None)]
)
def test_the_earlier_story_is_named_if_known(times: tuple[int | None, int | None], earlier: str | None) -> None:
    a, b = (story_of(TEXTS[ODIA], published_at=time) for time in times)
    assert find_evidence(a, b, THRESHOLDS).earlier == earlier


@pytest.mark.parametrize(("authors", "same"), [(("7", "7"), True), (("7", "8"), False), ((None, "7"), None)])
def test_a_common_author_is_recognised(authors: tuple[str | None, str | None], same: bool | None) -> None:
    a, b = (story_of(TEXTS[TAMIL], author_id=author) for author in authors)
    assert find_evidence(a, b, THRESHOLDS).same_author is same


def test_the_kind_follows_the_given_thresholds() -> None:
    a, b = sample(4103000), sample(4103005)
    assert find_evidence(a, b, THRESHOLDS).kind == SIMILAR
    assert find_evidence(a, b, Thresholds(jaccard=0.9)).kind == PARTIAL
    assert find_evidence(a, b, Thresholds(jaccard=0.9, containment=0.9)).kind == PASSAGE
    assert find_evidence(a, b, Thresholds(jaccard=0.9, containment=0.9, passage_words=900)).kind == REWRITTEN


def long_story(seed: str, copied: list[str]) -> str:
    """500 words, of which runs of four stand in every such story, and the copied words after the first 190."""
    words = [f"{seed}{n}" if n % 20 < 16 else f"phrase{n}" for n in range(500)]
    return " ".join(words[:190] + copied + words[190:])


@every_language
def test_a_passage_is_shown_without_runs_by_chance(language: Language) -> None:
    words = [f"{word}{n}" for n in range(20) for word in TEXTS[language].split()][:110]
    edited = [*words[:40], "another", *words[41:]]
    a, b = story_of(long_story("a", words)), story_of(long_story("b", edited))
    facts = find_evidence(a, b, THRESHOLDS)
    assert_evidence(facts, (a, b))
    assert facts.kind == PASSAGE and facts.longest_run_words is not None
    found = len(tokenize(" ".join(words))) - len(tokenize(words[40]))
    assert facts.copied_words == sum(passage.words for passage in facts.passages) == found
    assert len(facts.passages) == 2
    text = " ".join(shown(facts).split())
    assert f"{found} words copied, the longest run {facts.longest_run_words}" in text
    common = hash_passages(Text(" ".join(words)).word_hashes)
    facts = find_evidence(a, b, THRESHOLDS, common)
    assert facts.kind is None and facts.common_words is not None
    assert 0.8 * found <= facts.common_words <= found
    assert f"and {facts.common_words} in common passages" in " ".join(shown(facts).split())


def shown(facts: Evidence, width: int = 120, *, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(width=width, file=out, force_terminal=terminal, color_system="standard" if terminal else None)
    console.print(render_pair(facts))
    return out.getvalue()


@every_planted_pair
@pytest.mark.parametrize("width", [20, 80, 200])
def test_evidence_fits_a_terminal_of_any_width(pair: dict[str, Any], width: int) -> None:
    facts = find_evidence(sample(pair["a"]), sample(pair["b"]), THRESHOLDS)
    text = shown(facts, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert text.count("«") == text.count("»") == 2 * min(len(facts.passages), SHOWN_PASSAGES)
    assert shown(facts, width, terminal=True).count("\x1b[") > text.count("«"), "copied words must be coloured"


def test_stories_are_neither_markup_nor_control_sequences() -> None:
    text = "zero [bold red]one[/] two \x1b[2J three :smile: \u202e four \x07five" + " and so it goes on"
    a = story_of(f"{text} six", title="[b]A[/b] \x1b[31m", author_id="[i]7", id=1)
    text = shown(find_evidence(a, story_of(text, id=2), THRESHOLDS))
    for words in ("[b]A[/b]", "author [i]7", "[bold red]one[/]", ":smile:"):
        assert words in text
    for control in "\x1b\x07\u202e":
        assert control not in text


def test_passages_beyond_the_shown_ones_are_counted() -> None:
    copied = [[f"w{n}x{place}" for place in range(MIN_BLOCK + (n < SHOWN_PASSAGES))] for n in range(SHOWN_PASSAGES + 3)]
    a = " ".join(f"{' '.join(words)} a{n}" for n, words in enumerate(copied))
    b = " ".join(f"{' '.join(words)} b{n}" for n, words in enumerate(copied))
    facts = find_evidence(story_of(a), story_of(b), THRESHOLDS)
    assert len(facts.passages) == len(copied)
    text = shown(facts)
    assert text.count("from word") == SHOWN_PASSAGES
    assert f"and 3 more, of {3 * MIN_BLOCK} words together" in text


def test_a_long_passage_is_shortened_in_the_middle() -> None:
    text = " ".join(f"w{n}" for n in range(1000))
    seen = shown(find_evidence(story_of(text), story_of(f"{text} more"), THRESHOLDS))
    assert "1. 1,000 words, from word 1 of A and word 1 of B" in seen
    assert "[…]" in seen
    assert "w999»" in seen
    assert "w500" not in seen
    assert "100 % of A is also in B, 99 % of B in A" in seen, "99.9 is not all of it"
