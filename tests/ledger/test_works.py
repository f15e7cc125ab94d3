"""Laws of the works of the reference: a work is earlier than every story, whatever the dates; works are not compared
with each other; and works that are removed leave the ledger as if it had never had them.
"""

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.core.publication_order import Dates, find_earlier, make_sort_key
from neardup.core.verify.clusters import Edge, find_clusters
from neardup.ledger import (
    authors,
    candidates,
    case_queue,
    cases,
    flags,
    similarities,
    stories,
    verdicts,
    verification,
)
from neardup.ledger.flags import Selection
from neardup.ledger.stories import remove_all
from neardup.records import Assessment, Fingerprinted, Signals, Skip, Skipped, Story, Verdict, is_work

from tests.support.builders import commit, fingerprint_of, ledger_in_memory
from tests.support.languages import HINDI

EVERY = Selection(statuses=(), same_author=True)
times = st.none() | st.integers(-5, 5)
story_ids, work_ids = st.integers(1, 6), st.integers(-4, -1)
dates = st.fixed_dictionaries(dict.fromkeys((*range(1, 7), *range(-4, 0)), times))
pairs = st.sets(st.tuples(work_ids | story_ids, story_ids).filter(lambda pair: pair[0] < pair[1]), min_size=1)
OF_THE_LEDGER = (  # the tables that say nothing of what was done when
    "stories", "works", "candidates", "suppressed_pairs", "known_before", "verdicts", "similarities", "cases",
    "dead_letters", "forgotten", "passage_hashes",
)  # fmt: skip
OF_THE_TIME = {
    "number",
    "known_since",
    "opened_at",
    "flagged_at",
    "flag_id",
}  # columns that depend on when and in what order


def listed(story_id: int, published: int | None, licence: str | None = None) -> Story:
    catalogue = "classics" if is_work(story_id) else None
    return Story(
        story_id, HINDI, author_id=f"author {story_id}", published_at=published, catalogue=catalogue, licence=licence
    )


def made(story: Story) -> Fingerprinted:
    return Fingerprinted(story, fingerprint_of(abs(story.id).to_bytes(16)), None)


def add(db: sqlite3.Connection, published: dict[int, int | None], found: set[tuple[int, int]]) -> None:
    """Add these stories, and flag these pairs as similar."""
    commit(db, *(made(listed(story_id, at)) for story_id, at in published.items()), pairs=found)
    pending = candidates.list_pending(db, (-(2**63), 0), 100)
    verification.record(db, [(pair, Assessment("similar", Signals(40, jaccard=0.6))) for pair in pending], "v")
    cases.refresh(db)


@given(dates, pairs)
def test_a_work_is_earlier_than_every_story_whatever_the_dates(
    published: dict[int, int | None], found: set[tuple[int, int]]
) -> None:
    with closing(ledger_in_memory()) as db:
        add(db, published, found)
        rows = list(flags.select(db, EVERY))
        assert {tuple(sorted((row["story_id"], row["matched_id"]))) for row in rows} == found
        for row in rows:
            assert not is_work(row["story_id"]), "a work is said to copy"
            assert row["catalogue"] == ("classics" if is_work(row["matched_id"]) else None)
            by_key = sorted(
                (row["story_id"], row["matched_id"]), key=lambda story_id: make_sort_key(published[story_id], story_id)
            )
            assert by_key == [row["matched_id"], row["story_id"]], "the view and sort_key disagree"
        for a, b in db.execute("SELECT a, later_id FROM flags WHERE a < 0"):
            assert b is not None and not is_work(b), f"the copy of work {a} is not known to be later"
        for story in range(1, 7):
            of_story = similarities.read_similarity(db, story)
            assert of_story is not None
            assert {source.story_id for source in of_story.sources} >= {
                a for a, b in found if b == story and is_work(a)
            }
        assert not any(is_work(row[0]) or is_work(row[1]) for row in db.execute("SELECT case_id, lead FROM cases"))
        copiers = {b for a, b in found if is_work(a)}
        histories = authors.read_histories(db, [f"author {story}" for story in copiers])
        assert all(histories[f"author {story}"].open for story in copiers), "a copy of a work is not counted"


@given(st.none() | st.integers(), st.none() | st.integers())
def test_the_order_of_a_work_and_a_story_is_always_known(work: int | None, story: int | None) -> None:
    assert find_earlier(Dates(work, catalogue="c"), Dates(story)) == "a"
    assert find_earlier(Dates(story), Dates(work, catalogue="c")) == "b"


@given(pairs, dates)
def test_a_cluster_begins_with_its_works(found: set[tuple[int, int]], published: dict[int, int | None]) -> None:
    edges: list[Edge] = [(a, b, 1.0) for a, b in found]
    for cluster in find_clusters(edges, published):
        kinds = [is_work(story) for story in cluster.stories]
        assert kinds == sorted(kinds, reverse=True), "a story is before a work"
        if sum(kinds) == 1:
            assert cluster.earliest == cluster.stories[0]
        elif any(kinds):
            assert cluster.earliest in {None, cluster.stories[0]}


@given(st.lists(work_ids | story_ids, unique=True), st.lists(work_ids | story_ids, unique=True), work_ids | story_ids)
def test_works_are_not_compared_with_each_other(whole: list[int], by_passages: list[int], story: int) -> None:
    with closing(ledger_in_memory()) as db:
        commit(db, *(made(listed(n, None)) for n in (*range(1, 7), *range(-4, 0))))
        ids = [n for n in whole if n != story]
        others = [n for n in by_passages if n not in {story, *ids}]
        candidates.nominate_again(db, [candidates.Matches(story, ids, 50, others)])
        rows = db.execute("SELECT a, b FROM candidates").fetchall()
        expected = {(min(story, n), max(story, n)) for n in (*ids, *others)}
        assert set(rows) == {(a, b) for a, b in expected if not is_work(b)}


def state(db: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    found = {}
    for table in (*OF_THE_LEDGER, "flags"):
        names = [row[1] for row in db.execute(f"PRAGMA table_xinfo({table})")]
        columns = ", ".join(name for name in names if name not in OF_THE_TIME)
        found[table] = sorted(db.execute(f"SELECT {columns} FROM {table}"), key=repr)
    return found


@given(dates, pairs, st.sets(story_ids))
def test_works_that_are_removed_leave_no_trace(
    published: dict[int, int | None], found: set[tuple[int, int]], decided: set[int]
) -> None:
    with closing(ledger_in_memory()) as db, closing(ledger_in_memory()) as without:
        own = {n: at for n, at in published.items() if not is_work(n)}
        add(without, own, {pair for pair in found if not is_work(pair[0])})
        add(db, own, {pair for pair in found if not is_work(pair[0])})
        add(db, {n: at for n, at in published.items() if is_work(n)}, {pair for pair in found if is_work(pair[0])})
        copies = db.execute("SELECT flag_id, b FROM flags WHERE a < 0").fetchall()
        some = [flag_id for flag_id, b in copies if b in decided]
        if some:
            verdicts.decide(db, some, Verdict.PLAGIARISM, "as seen", "Asha", verdicts.identify_state(db, some))
        stories.erase(db, stories.list_works(db, "classics"))
        cases.refresh(db)
        assert state(db) == state(without)


@pytest.mark.parametrize("again", [made, lambda story: Skipped(story, Skip.UNCHANGED)])
def test_the_licence_is_that_of_the_latest_listing(again: object) -> None:
    with closing(ledger_in_memory()) as db:
        commit(db, made(listed(-1, None, "CC BY 4.0")), made(listed(-2, None, None)))
        commit(db, again(listed(-1, None, "CC0")))  # type: ignore[operator]
        [catalogue] = stories.list_catalogues(db)
        assert (catalogue.name, catalogue.licences, catalogue.works) == ("classics", ("CC0",), 2)


def test_refingerprinting_keeps_the_catalogues() -> None:
    with closing(ledger_in_memory()) as db:
        add(db, {1: None, -1: None}, {(-1, 1)})
        remove_all(db, "v2", "")
        [catalogue] = stories.list_catalogues(db)
        assert (catalogue.works, catalogue.without_fingerprint, catalogue.open_flags) == (1, 1, 0)
        assert stories.list_unlisted_works(db, {-1}) == [] and stories.list_unlisted_works(db, set()) == [-1]


def test_a_forgotten_work_is_in_no_catalogue() -> None:
    with closing(ledger_in_memory()) as db:
        add(db, {1: None, -1: None}, {(-1, 1)})
        assert stories.forget(db, -1)[0]
        assert stories.list_catalogues(db) == []


@given(dates, pairs, st.sampled_from(["classics", "other"]))
def test_pairs_and_cases_are_found_by_the_catalogue(
    published: dict[int, int | None], found: set[tuple[int, int]], catalogue: str
) -> None:
    with closing(ledger_in_memory()) as db:
        add(db, published, found)
        copies = {pair for pair in found if is_work(pair[0])} if catalogue == "classics" else set()
        rows = flags.select(db, replace(EVERY, catalogue=catalogue))
        assert {(row["matched_id"], row["story_id"]) for row in rows} == copies
        assert stories.count_open_flags_of_works(db).get(catalogue, 0) == len(copies)

        every = case_queue.CaseSelection(status=case_queue.EVERY)
        of_catalogue = replace(every, catalogue=catalogue)
        cases_of_copies = {case for (case,) in db.execute("SELECT case_id FROM flags WHERE a < 0")} if copies else set()
        assert {row["case_id"] for row in case_queue.select(db, of_catalogue)} == cases_of_copies
        counts = case_queue.count_by_filter(db, of_catalogue)
        assert counts.total == counts.catalogues[catalogue] == len(cases_of_copies)
        assert case_queue.count_by_filter(db, every).total == case_queue.count(db, every)
