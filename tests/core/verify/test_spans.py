"""Laws: the runs of equal words are in the spans of both texts, in no word twice, and all that is copied is in them;
each span is paired with the one that copies it; exchanging the texts exchanges the sides.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.config import Thresholds
from neardup.core.fingerprint.word_hashes import WINDOW, PassageHashes, hash_passages
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import examine
from neardup.core.verify.spans import _keep_first_of_span, find_runs, pair_spans
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COPIED_WORDS
from neardup.records import Assessment

from tests.core.verify.test_alignment import prose
from tests.core.verify.test_alignment import stories as all_stories
from tests.support.builders import text_of_words

unhurried = settings(deadline=None)
stories = all_stories.filter(bool)


def text_of(words: Sequence[object]) -> Text:
    return text_of_words([str(word).encode() for word in words])


def examined(a: Text, b: Text, common: PassageHashes = NO_HASHES) -> Assessment:
    return examine(a, b, 64, Thresholds(), common, is_of_one_language=True)


def words_of(spans: np.ndarray) -> list[int]:
    return [word for start, end in spans.tolist() for word in range(start, end)]


@unhurried
@given(stories, stories, st.integers(1, 4))
def test_runs_are_the_copied_words_of_both_texts(text_a: str, text_b: str, every: int) -> None:
    a, b = text_of(text_a), text_of(text_b)
    found = examined(a, b, hash_passages(a.word_hashes)[::every] if every < 4 else NO_HASHES)
    runs = find_runs(a, b, found)
    assert all(
        a.word_hashes[start:end].tolist() == b.word_hashes[match_start:match_end].tolist() and start < end
        for start, end, match_start, match_end in runs.tolist()
    )
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(runs.tolist())), "runs overlap in a"
    for sides, spans in ((runs[:, :2], found.spans_a), (runs[:, 2:], found.spans_b)):
        assert len(set(words_of(sides))) == len(words_of(sides)), "a word is in two runs"
        assert set(words_of(sides)) <= set(words_of(spans)), "a run leaves the spans"
    assert len(words_of(runs[:, :2])) >= found.signals.extra[COPIED_WORDS], "copied words are in no run"
    assert sorted(find_runs(b, a, examined(b, a, NO_HASHES))[:, [2, 3, 0, 1]].tolist()) == sorted(
        find_runs(a, b, examined(a, b, NO_HASHES)).tolist()
    ), "exchanging the texts changes the runs"


@unhurried
@given(st.permutations(range(4)), st.integers(2 * WINDOW, 90), st.booleans())
def test_each_span_is_paired_with_the_one_that_copies_it(order: list[int], n: int, has_prayer: bool) -> None:
    parts = [prose(f"part{k}", n) for k in range(4)]
    a = text_of([word for k in range(4) for word in [*prose(f"own{k}", n + 20), *parts[k]]])
    b = text_of([word for k in order for word in [*prose(f"other{k}", n + 20), *parts[k]]])
    common = hash_passages(text_of(parts[0]).word_hashes) if has_prayer else NO_HASHES
    found = examined(a, b, common)
    pairs = pair_spans(a, b, found)
    assert [row[:2] for row in pairs.tolist()] == found.spans_a.tolist()
    assert sorted(row[2:] for row in pairs.tolist()) == found.spans_b.tolist()
    for start, end, match_start, match_end in pairs.tolist():
        assert a.word_hashes[start:end].tolist() == b.word_hashes[match_start:match_end].tolist()
    assert len(pairs) == (3 if has_prayer else 4)


@given(st.lists(st.tuples(*[st.integers(0, 5)] * 4)))
def test_each_span_is_in_the_first_pair_that_has_it(pairs: list[tuple[int, int, int, int]]) -> None:
    kept = _keep_first_of_span(np.array(pairs, np.int32).reshape(-1, 4)).tolist()
    for side in (0, 2):
        assert len({pair[side] for pair in kept}) == len(kept), "a span is in two pairs"
    for place, pair in enumerate(pairs):
        before = [earlier for earlier in pairs[:place] if list(earlier) in kept]
        has_partner = any(earlier[0] == pair[0] or earlier[2] == pair[2] for earlier in before)
        assert has_partner or list(pair) in kept, f"{pair} is left out, though neither of its spans has a partner"
