"""Laws: a story is known since neardup recorded it, whatever happens to its text, until it is forgotten; and unpacking
a compact column returns the original text.
"""

import json
import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.ledger import cases, complaints, stories, story_rows, verdicts, webhook_events
from neardup.ledger.stories import remove_all
from neardup.records import FIRST_ID_OF_NAMES, Fingerprinted, Mark, MarkReason, Skip, Skipped, Story, Verdict

from tests.support.builders import commit, fingerprint_of, fingerprinted, flag_spans, ledger_in_memory
from tests.support.languages import HINDI
from tests.support.sampling import count_examples
from tests.support.verdicts import EVIDENCE, give_verdict, put_complaint

RECORDED = 1_000
NAME = "रहस्य"


def known_since(db: sqlite3.Connection) -> int | None:
    row = story_rows.describe(db, [1]).get(1)
    return None if row is None else row["known_since"]


EVENTS = {
    "edited": lambda db: commit(db, fingerprinted(1, 2), fingerprinted(2, 3)),
    "retitled": lambda db: commit(db, Skipped(Story(1, HINDI, title="new"), Skip.UNCHANGED)),
    "emptied": lambda db: commit(db, Skipped(Story(1, HINDI), Skip.EMPTY)),
    "refingerprinted": lambda db: remove_all(db, "v", "e"),
}


@settings(deadline=None, max_examples=count_examples(30))
@given(st.lists(st.sampled_from(sorted(EVENTS)), max_size=5))
def test_known_since_survives_every_change_of_the_story(events: list[str]) -> None:
    with closing(ledger_in_memory()) as db, pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.ledger.stories.now_ms", lambda: RECORDED)
        commit(db, fingerprinted(1, 1))
        patch.setattr("neardup.ledger.stories.now_ms", lambda: RECORDED + 7)
        for event in events:
            EVENTS[event](db)
        commit(db, fingerprinted(1, 9), fingerprinted(5, 9))
        assert known_since(db) == RECORDED, events
        assert story_rows.describe(db, [5])[5]["known_since"] == RECORDED + 7, (
            "a new story is known since it was recorded"
        )
        assert db.execute("SELECT count(*) FROM known_before WHERE story_id = 1").fetchone() == (0,)


def test_forgotten_story_leaves_no_time() -> None:
    with closing(ledger_in_memory()) as db:
        commit(db, fingerprinted(1, 1))
        stories.forget(db, 1)
        assert db.execute("SELECT count(*) FROM known_before").fetchone() == (0,)


@pytest.mark.parametrize("is_emptied", [False, True])
def test_a_forgotten_story_is_named_nowhere(is_emptied: bool) -> None:
    """Neither in what is on record nor in what waits to be posted; what is compared meanwhile brings nothing back."""
    story, source, other = (FIRST_ID_OF_NAMES + n for n in (1, 2, 3))
    listed = dict[int, Story]()
    with closing(ledger_in_memory()) as db:
        webhook_events.subscribe(db, [webhook_events.VERDICTS, webhook_events.FLAGS])
        for story_id, name in ((story, NAME), (source, "source"), (other, "other")):
            listed[story_id] = Story(story_id, HINDI, path=f"{name}.html", title=name, name=name)
            commit(db, Fingerprinted(listed[story_id], fingerprint_of(bytes(16)), None))
        for pair in ((story, source), (story, other), (source, other)):
            flag_spans(db, *pair)
        webhook_events.collect_flags(db, same_author=True)
        complained = [put_complaint(db, *pair) for pair in ((story, source), (source, story))]
        quoting = EVIDENCE | {"matches": [EVIDENCE["matches"][0] | {"story_id": NAME, "title": NAME}]}
        for number in complained:
            complaints.put_evidence(db, number, quoting)
            complaints.put_evidence(db, number, None, f"story {story}: there is no page {NAME}.html")
        cases.refresh(db)
        give_verdict(db, [(source, other)], Verdict.QUOTATION)
        assert NAME in str(verdicts.list_events_of_decision(db, 1)[0]["cases"])
        if is_emptied:
            commit(db, Skipped(listed[story], Skip.EMPTY, marks=(Mark(MarkReason.EMPTY, ""),)))
        stories.forget(db, story)
        for number in complained:
            complaints.put_evidence(db, number, quoting)
            complaints.put_evidence(db, number, None, f"story {story}: there is no page {NAME}.html")
        assert [line for line in db.iterdump() if NAME in line] == []
        events = [json.loads(event) for (event,) in db.execute("SELECT event FROM webhook_events")]
        assert [event["cases"] for event in events if event["event"] == "verdict"] == [[]]
        assert [event["story_id"] for event in events if event.get("step") == "closed"] == [story]


def test_languages_keep_their_numbers_in_the_ledger() -> None:
    db = ledger_in_memory()
    assert tuple(name for (name,) in db.execute("SELECT name FROM languages ORDER BY number")) == LANGUAGES


TEXTS = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.from_regex(r'"[0-9a-fA-F]{31,33}"', fullmatch=True),
    st.from_regex(r'(W/)?"?[0-9a-f]{32}(-[0-9]{1,2})?"?\n?', fullmatch=True),
    st.from_regex(r"[-+]?0?[0-9]{1,20}\n?", fullmatch=True),
)


@given(etag=TEXTS.filter(lambda etag: etag != ""), author=TEXTS)  # an empty ETag is none
def test_unpacking_returns_the_original_text(etag: str | None, author: str | None) -> None:
    db = ledger_in_memory()
    story = Story(1, HINDI, author_id=author, title=author)
    commit(db, Fingerprinted(story, fingerprint_of(bytes(16)), etag))
    row = story_rows.describe(db, [1])[1]
    known = stories.read_stored_versions(db, [1]).get(1)
    assert known is not None and known.etag == row["etag"] == etag
    assert row["author_id"] == author
    assert row["title"] == ("1" if author is None else author)
    db.close()


def test_md5_and_id_are_stored_compactly() -> None:
    db = ledger_in_memory()
    commit(db, Fingerprinted(Story(1, HINDI, author_id="6755373518"), fingerprint_of(bytes(16)), f'"{"0f" * 16}"'))
    assert db.execute("SELECT etag, author_id FROM stories").fetchone() == (b"\x0f" * 16, 6755373518)
