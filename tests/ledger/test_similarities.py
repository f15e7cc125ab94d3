"""Laws: similarities are those computed from scratch, and none is due; packing spans loses nothing."""

import sqlite3
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from msgspec import Struct
from neardup.core.verify.spans import count_words, union_of_spans
from neardup.core.verify.tiers import list_kinds
from neardup.ledger import flags, similarities, stories
from neardup.ledger.flags import Selection
from neardup.ledger.similarities import pack_spans, unpack_spans
from neardup.records import Kind, Spans

from tests.support.builders import flag_spans, spans_of
from tests.support.changing_ledger import LATEST, STORIES, WORDS, ChangingLedger, pairs
from tests.support.sampling import count_examples

runs = st.lists(st.tuples(st.integers(0, WORDS - 1), st.integers(1, 15)), min_size=1, max_size=3).map(
    lambda found: spans_of(*((start, min(start + words, WORDS)) for start, words in found))
)


class Copied(Struct, frozen=True):
    """What a story copies from a source, as the test computes it."""

    source: int
    kind: Kind
    words: frozenset[int]


def copied_from(db: sqlite3.Connection, story_id: int) -> list[Copied]:
    """What a story copies, from the tables of stories and flags alone."""
    facts = {n: (time, author) for n, time, author in db.execute("SELECT id, published_at, author_id FROM stories")}
    found: list[Copied] = []
    for a, b, kind, status, spans_a, spans_b in db.execute("SELECT a, b, kind, status, spans_a, spans_b FROM flags"):
        if story_id not in (a, b) or not {a, b} <= facts.keys() or status not in {"open", "plagiarism", "quotation"}:
            continue
        other, spans = (b, spans_a) if story_id == a else (a, spans_b)
        (own_time, own), (time, author) = facts[story_id], facts[other]
        if (LATEST if time is None else time, other) > (LATEST if own_time is None else own_time, story_id):
            continue
        if own is not None and own == author:
            continue
        words = frozenset(word for start, end in unpack_spans(spans).tolist() for word in range(start, end))
        found.append(Copied(other, kind, words))
    return found


def expected(db: sqlite3.Connection, story_id: int) -> tuple[object, ...] | None:
    """The row of a story, computed from scratch; None for a story that copies nothing."""
    found = [source for source in copied_from(db, story_id) if source.words]
    if not found:
        return None
    copied = len(frozenset[int]().union(*(source.words for source in found)))
    top = min(found, key=lambda source: (-len(source.words), source.source))
    ordered = [kind for kind in list_kinds() if kind in {source.kind for source in found}]
    return copied, copied / WORDS, len(found), top.source, len(top.words) / WORDS, ", ".join(ordered)


class AnyOperations(ChangingLedger):
    """Operations on a ledger, in any order, with flags of all kinds and any spans."""

    @rule(pair=pairs, kind=st.sampled_from(list_kinds()), spans_a=runs, spans_b=runs)
    def flag(self, pair: tuple[int, int], kind: Kind, spans_a: Spans, spans_b: Spans) -> None:
        self.flag_pair(pair, kind, spans_a, spans_b)

    @rule(pair=pairs)
    def flag_without_texts(self, pair: tuple[int, int]) -> None:
        if len(stories.read_stored_versions(self.db, pair)) == 2:
            flag_spans(self.db, *pair)

    @invariant()
    def similarities_are_those_computed_from_scratch(self) -> None:
        present = [row[0] for row in self.db.execute("SELECT id FROM stories")]
        want = {story: row for story in present if (row := expected(self.db, story))}
        rows = self.db.execute(
            "SELECT story_id, copied_words, similarity, sources, top_source, top_share, kinds FROM similarities"
        )
        assert {story: tuple(row) for story, *row in rows} == want
        assert self.db.execute("SELECT count(*) FROM due_similarities").fetchone() == (0,)

    @invariant()
    def similarity_of_a_story_lists_its_sources_by_share(self) -> None:
        for story in range(1, STORIES + 1):
            found = similarities.read_similarity(self.db, story)
            if found is None:
                continue
            want = copied_from(self.db, story)
            assert {(source.story_id, source.kind, source.copied_words) for source in found.sources} == {
                (source.source, source.kind, len(source.words)) for source in want
            }
            assert [source.share for source in found.sources] == sorted(
                (source.share for source in found.sources), reverse=True
            )
            assert found.copied_words == len(frozenset[int]().union(*(source.words for source in want)))
            assert int(np.diff(found.spans).sum()) == found.copied_words

    @invariant()
    def stories_are_selected_by_similarity(self) -> None:
        rows = list(similarities.select(self.db))
        order = [(-row["similarity"], row["story_id"]) for row in rows]
        assert order == sorted(order)
        with_open = {
            story
            for (story,) in self.db.execute(
                "SELECT story_id FROM sources JOIN flags USING (flag_id) WHERE status = 'open'"
            )
        }
        similar: dict[int, Any] = dict(self.db.execute("SELECT story_id, similarity FROM similarities"))
        assert {row["story_id"] for row in rows} == with_open & similar.keys()
        half = Selection(similarity=0.5)
        assert [row["story_id"] for row in similarities.select(self.db, half)] == [
            row["story_id"] for row in rows if row["similarity"] >= 0.5
        ]
        assert similarities.tally(self.db, half).total() == sum(row["similarity"] >= 0.5 for row in rows)
        pairs = flags.select(self.db, Selection(similarity=0.5, same_author=True))
        every = flags.select(self.db, Selection(same_author=True))
        assert [row["flag_id"] for row in pairs] == [row["flag_id"] for row in every if row["similarity"] >= 0.5]


TestAnyOperations = AnyOperations.TestCase
TestAnyOperations.settings = settings(deadline=None, max_examples=count_examples(100), stateful_step_count=25)


bounds = st.tuples(st.integers(0, 2**20), st.integers(1, 400)).map(lambda run: (run[0], run[0] + run[1]))
many = st.lists(bounds, max_size=30).map(lambda spans: np.array(spans, np.int32).reshape(-1, 2))
few_words = st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=12).map(
    lambda runs: np.array([(begin, begin + length) for begin, length in runs], np.int32).reshape(-1, 2)
)


def words_of(spans: Spans) -> set[int]:
    return {word for begin, end in spans.tolist() for word in range(begin, end)}


@given(many)
def test_packing_loses_nothing_in_any_order(spans: Spans) -> None:
    data = pack_spans(spans)
    assert np.array_equal(unpack_spans(data), spans) and unpack_spans(data).dtype == np.int32
    assert (data is None) == (not len(spans)) and len(data or b"") <= 7 * len(spans)


@given(few_words)
def test_union_has_the_same_words_once(spans: Spans) -> None:
    joined = union_of_spans(spans)
    assert words_of(joined) == words_of(spans)
    flat = joined.ravel().tolist()
    assert flat == sorted(set(flat)), "spans of a union neither overlap nor touch"
    assert count_words(spans) == len(words_of(spans))
