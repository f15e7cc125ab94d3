"""Laws of the desk's queues: an address says which flags it holds, and reads back as it was; whatever was judged
meanwhile, a moderator goes on to a pair that has not been seen, and at the end to none.
"""

import sqlite3
import unicodedata
from contextlib import closing
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.fingerprint.version import TEXTS
from neardup.ledger import flags, verdicts
from neardup.ledger.selection import Selection
from neardup.moderation.desk.pages import MOST_IN_TITLE, short
from neardup.moderation.desk.query import STATUSES, number, query_of, selection_of
from neardup.moderation.desk.queue import place
from neardup.records import Kind, Language, Verdict

from tests.support.builders import commit, fingerprinted, ledger_in_memory, verify_pending

one_or_none = st.none() | st.integers(0, 10**15)
selections = st.builds(
    Selection,
    languages=st.just(()) | st.tuples(st.sampled_from(Language)),
    kinds=st.just(()) | st.tuples(st.sampled_from(Kind)),
    statuses=st.sampled_from(list(STATUSES.values())),
    score=st.none() | st.floats(0, 1),
    author=st.none() | st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda said: said == said.strip()),
    story=one_or_none,
    cluster=one_or_none,
)


@given(selections)
def test_an_address_reads_back_as_it_was(selection: Selection) -> None:
    query = query_of(selection)
    assert selection_of(dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))) == selection
    assert query.isascii()
    assert (query == "") == (selection == Selection())


@pytest.mark.parametrize(
    "query",
    [
        {"language": "klingon"}, {"kind": "EXACT"}, {"status": "withdrawn"}, {"status": "x"}, {"score": "2"},
        {"score": "nan"}, {"score": "-1"}, {"score": "x"}, {"story": "-1"}, {"story": "1.0"}, {"cluster": "9" * 30},
    ],
)  # fmt: skip
def test_an_address_of_no_queue(query: dict[str, str]) -> None:
    with pytest.raises(web.HTTPBadRequest):
        selection_of(query)


def test_what_is_left_empty_in_a_form_filters_nothing() -> None:
    assert selection_of(dict.fromkeys(("language", "kind", "status", "score", "author", "story", "cluster"), " ")) == (
        Selection()
    )


@pytest.mark.parametrize("said", ["-1", "x", "1.0", "٣", "9" * 13, "99999999"])
def test_a_place_is_a_number(said: str) -> None:
    with pytest.raises(web.HTTPBadRequest):
        number({"at": said}, "at")


def queue(db: sqlite3.Connection) -> list[tuple[int, int]]:
    return [(min(pair), max(pair)) for pair in ((row["story_id"], row["matched_id"]) for row in flags.select(db))]


def ledger(pairs: int) -> sqlite3.Connection:
    """So many open flags, of two stories each."""
    db = ledger_in_memory()
    for n in range(pairs):
        commit(db, fingerprinted(2 * n, n), fingerprinted(2 * n + 1, n), pairs=[(2 * n, 2 * n + 1)])
    verify_pending(db)
    return db


def judge(db: sqlite3.Connection, pair: tuple[int, int], verdict: Verdict = Verdict.QUOTATION) -> None:
    flag = flags.of_pair(db, *pair)
    assert flag is not None
    verdicts.judge(db, [flag["flag_id"]], verdict, "", "Asha", verdicts.state(db, [flag["flag_id"]]))


@settings(deadline=None, max_examples=50)
@given(st.integers(2, 12), st.data())
def test_the_next_pair_is_one_that_nobody_has_judged(size: int, data: st.DataObject) -> None:
    with closing(ledger(size)) as db:
        before = queue(db)
        at = data.draw(st.integers(0, size - 1))
        mine = before[at]
        for pair in data.draw(st.lists(st.sampled_from(before), unique=True).filter(lambda some: mine not in some)):
            judge(db, pair)  # by others, since the page of `mine` was made
        stands = place(db, Selection(), mine, at)
        judge(db, mine)
        after = queue(db)
        want = next((pair for pair in before[at + 1 :] if pair in after), None)
        assert stands.after == want
        if stands.after:
            assert place(db, Selection(), stands.after, stands.at).at == after.index(stands.after)
            assert place(db, Selection(), mine, stands.at).after == want, "also when it is asked once more"


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 8))
def test_a_queue_is_walked_from_end_to_end(size: int) -> None:
    with closing(ledger(size)) as db:
        pairs = queue(db)
        for at, pair in enumerate(pairs):
            stands = place(db, Selection(), pair, at)
            assert stands.stands and stands.at == at
            assert stands.before == (pairs[at - 1] if at else None)
            assert stands.after == (pairs[at + 1] if at + 1 < size else None)


def test_a_pair_of_another_queue_stands_before_what_is_there() -> None:
    with closing(ledger(3)) as db:
        judge(db, (0, 1))
        every = replace(Selection(), statuses=STATUSES["every"])
        assert place(db, every, (0, 1), 0).stands
        assert not place(db, Selection(), (0, 1), 0).stands
        assert place(db, Selection(), (0, 1), 0).after == (2, 3)
        assert place(db, Selection(), (7, 8), 10_000).after is None


@pytest.mark.parametrize("language", Language)
def test_a_long_title_is_not_cut_within_a_character(language: Language) -> None:
    text = " ".join(TEXTS[language].split()) * 20
    for start in range(40):
        title = text[start:]
        cut = short(title)
        assert title.startswith(cut[:-1]) and cut.endswith("…")
        assert len(cut) <= MOST_IN_TITLE + 1
        rest = title[len(cut) - 1 :]
        assert short(rest[:MOST_IN_TITLE]) == rest[:MOST_IN_TITLE]
        assert unicodedata.category(rest[0])[0] != "M", "a sign is parted from its letter"
    assert short("क" + "्" * 10_000) != ""
