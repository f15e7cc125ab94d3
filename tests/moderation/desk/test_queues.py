"""Laws of the desk's queues: the address of a queue round-trips to its selection; whatever others decide meanwhile, a
moderator continues with the next open case, and the queue ends after the last one.
"""

import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qsl

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.config import Config, Content, Detection, Source
from neardup.core.languages import LANGUAGES
from neardup.core.verify.tiers import list_kinds
from neardup.ledger import case_queue, cases, verdicts
from neardup.ledger.case_queue import Order
from neardup.ledger.flags import Selection
from neardup.moderation.desk.pages import MAX_TITLE_LENGTH, short
from neardup.moderation.desk.queues import (
    EVERY_CASE,
    MEANING_STATUSES,
    CaseQueue,
    MeaningQueue,
    find_case_position,
    format_meaning_query,
    parse_meaning_queue,
    read_number,
)
from neardup.records import Language, Verdict
from neardup.source.parse import parse_id

from tests.support.builders import commit, fingerprinted, ledger_in_memory, verify_pending
from tests.support.languages import TEXTS
from tests.support.sampling import count_examples

selections = st.builds(
    Selection,
    languages=st.just(()) | st.tuples(st.sampled_from(LANGUAGES)),
    kinds=st.just(()) | st.tuples(st.sampled_from(list_kinds())),
    statuses=st.sampled_from(list(MEANING_STATUSES.values())),
    author=st.none() | st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: text == text.strip()),
    catalogue=st.none() | st.sampled_from(["Classics", "पुनर्मुद्रण & more"]),
    same_author=st.booleans(),
)
stories = st.none() | st.integers(0, 10**15).map(str) | st.sampled_from(["कथा/1", "a&b=?#%2F", "reference:x/1"])
queues = st.builds(
    lambda selection, story: MeaningQueue(selection, story).only(story=None if story is None else parse_id(story)),
    selections,
    stories,
)
CONFIG = Config(source=Source(manifest=Path("none.csv")), content=Content(url="file:/none"))
KEEPING = replace(CONFIG, detection=Detection(same_author="keep"))


@given(queues)
def test_address_round_trips_to_its_queue(queue: MeaningQueue) -> None:
    query = format_meaning_query(queue)
    assert parse_meaning_queue(dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True)), CONFIG) == queue
    assert query.isascii()
    assert (query == "") == (queue == MeaningQueue())


@given(queues)
def test_pairs_of_one_author_are_in_every_queue_if_they_are_kept(queue: MeaningQueue) -> None:
    query = dict(parse_qsl(format_meaning_query(queue).removeprefix("?"), keep_blank_values=True))
    assert parse_meaning_queue(query, KEEPING) == queue.only(same_author=True)


@pytest.mark.parametrize(
    "query",
    [
        {"language": "klingon"}, {"kind": "EXACT"}, {"status": "withdrawn"}, {"status": "x"}, {"story": "x" * 10_000},
        {"story": "a\x00b"}, {"story": "a\nb"}, {"same_author": "1"},
    ],
)  # fmt: skip
def test_invalid_filters_are_rejected(query: dict[str, str]) -> None:
    with pytest.raises(web.HTTPBadRequest):
        parse_meaning_queue(query, CONFIG)


def test_empty_form_fields_filter_nothing() -> None:
    names = "language", "kind", "status", "author", "story", "same_author"
    assert parse_meaning_queue(dict.fromkeys(names, " "), CONFIG) == MeaningQueue()


@pytest.mark.parametrize("text", ["-1", "x", "1.0", "٣", "9" * 13, "99999999"])
def test_invalid_numbers_are_rejected(text: str) -> None:
    with pytest.raises(web.HTTPBadRequest):
        read_number({"at": text}, "at")


def queue(db: sqlite3.Connection) -> list[int]:
    cases.refresh(db)
    return case_queue.select_ids(db, EVERY_CASE, Order.SIMILARITY, limit=-1, offset=0)


def ledger(size: int) -> sqlite3.Connection:
    """A ledger with this many cases, each of one open flag between two stories."""
    db = ledger_in_memory()
    for n in range(size):
        commit(db, fingerprinted(2 * n, n), fingerprinted(2 * n + 1, n), pairs=[(2 * n, 2 * n + 1)])
    verify_pending(db)
    cases.refresh(db)
    return db


def decide(db: sqlite3.Connection, case_id: int) -> None:
    ids = cases.list_flags(db, case_id)
    verdicts.decide(db, ids, Verdict.QUOTATION, "", "Asha", verdicts.identify_state(db, ids))
    cases.refresh(db)


@settings(deadline=None, max_examples=count_examples(50))
@given(st.integers(2, 12), st.data())
def test_next_case_is_the_next_open_one(size: int, data: st.DataObject) -> None:
    with closing(ledger(size)) as db:
        before = queue(db)
        at = data.draw(st.integers(0, size - 1))
        shown = before[at]
        others = [case_id for case_id in before if case_id != shown]
        for case_id in data.draw(st.lists(st.sampled_from(others), unique=True)):
            decide(db, case_id)  # by another moderator, after the page of `shown` was rendered
        position = find_case_position(db, CaseQueue(), shown, at)
        decide(db, shown)
        after = queue(db)
        expected = next((case_id for case_id in before[at + 1 :] if case_id in after), None)
        assert position.after == expected
        if position.after is not None:
            assert find_case_position(db, CaseQueue(), position.after, position.at).at == after.index(position.after)
            again = find_case_position(db, CaseQueue(), shown, position.at)
            assert again.after == expected, "a repeated request differs"


@settings(deadline=None, max_examples=count_examples(30))
@given(st.integers(1, 8))
def test_queue_can_be_walked_from_end_to_end(size: int) -> None:
    with closing(ledger(size)) as db:
        found = queue(db)
        for at, case_id in enumerate(found):
            position = find_case_position(db, CaseQueue(), case_id, at)
            assert position.in_queue and position.at == at
            assert position.before == (found[at - 1] if at else None)
            assert position.after == (found[at + 1] if at + 1 < size else None)


def test_case_outside_the_queue_keeps_its_position() -> None:
    with closing(ledger(3)) as db:
        decide(db, 0)
        every = CaseQueue().only(status="every")
        assert find_case_position(db, every, 0, 0).in_queue
        assert not find_case_position(db, CaseQueue(), 0, 0).in_queue
        assert find_case_position(db, CaseQueue(), 0, 0).after == queue(db)[0]
        assert find_case_position(db, CaseQueue(), 7, 10_000).after is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_long_title_is_not_cut_inside_a_character(language: Language) -> None:
    text = " ".join(TEXTS[language].split()) * 20
    for start in range(40):
        title = text[start:]
        cut = short(title)
        assert title.startswith(cut[:-1]) and cut.endswith("…")
        assert len(cut) <= MAX_TITLE_LENGTH + 1
        rest = title[len(cut) - 1 :]
        assert short(rest[:MAX_TITLE_LENGTH]) == rest[:MAX_TITLE_LENGTH]
        assert unicodedata.category(rest[0])[0] != "M", "a combining mark is separated from its letter"
    assert short("क" + "्" * 10_000) != ""
