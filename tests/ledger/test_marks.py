"""Laws: a story has the marks of the last reading of its page, until it is forgotten or all are read again."""

from contextlib import closing
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.ledger import marks, stories
from neardup.ledger.stories import remove_all
from neardup.records import Mark, MarkReason, Marks, Skip, Skipped, Story

from tests.support.builders import commit, fingerprinted, ledger_in_memory
from tests.support.languages import HINDI, TAMIL

IDS = st.integers(1, 3)
FOUND: st.SearchStrategy[Marks] = st.sampled_from(
    [(), (Mark(MarkReason.MISLABELLED, "Tamil"),), (Mark(MarkReason.HIDDEN, "63 %"), Mark(MarkReason.EMPTY, ""))]
)
EVENTS = ["new text", "same text", "no text", "not read", "missing", "forgotten"]
READINGS = st.lists(st.tuples(st.sampled_from(EVENTS), IDS, FOUND))


@settings(deadline=None, max_examples=50)
@given(READINGS)
def test_marks_are_those_of_the_last_reading(readings: list[tuple[str, int, Marks]]) -> None:
    expected: dict[int, Marks] = {}
    with closing(ledger_in_memory()) as db:
        for number, (event, story_id, found) in enumerate(readings):
            is_known = bool(stories.stored_versions(db, [story_id]))
            if event == "forgotten":
                stories.forget(db, story_id)
                db.execute("DELETE FROM forgotten")
                expected.pop(story_id, None)
            elif event in {"not read", "missing"}:
                commit(db, Skipped(Story(story_id, HINDI), Skip.MISSING if event == "missing" else Skip.UNCHANGED))
            else:
                expected[story_id] = found
                if event == "no text":
                    commit(db, Skipped(Story(story_id, HINDI), Skip.EMPTY, marks=found))
                elif event == "same text" and is_known:
                    commit(db, Skipped(Story(story_id, HINDI), Skip.UNCHANGED, marks=found))
                else:
                    commit(db, replace(fingerprinted(story_id, number + 1), marks=found))
        held = db.execute("SELECT story_id, reason, detail FROM marks").fetchall()
        assert sorted(held) == sorted((n, m.reason, m.detail) for n, some in expected.items() for m in some), readings
        remove_all(db, "v2", "")
        assert marks.mark_counts(db) == []


def test_marks_are_counted_by_reason_language_and_detail() -> None:
    with closing(ledger_in_memory()) as db:
        for n, language, script in ((1, HINDI, "Tamil"), (2, HINDI, "Tamil"), (3, HINDI, "Latin"), (4, TAMIL, "Latin")):
            commit(db, replace(fingerprinted(n, n, language), marks=(Mark(MarkReason.MISLABELLED, script),)))
        found = marks.mark_counts(db)
        tally = [(one.language, one.detail, one.stories) for one in found]
        assert tally == [(HINDI, "Latin", 1), (HINDI, "Tamil", 2), (TAMIL, "Latin", 1)]
        assert [one.example for one in found if one.stories == 1] == [3, 4]


def test_shares_count_as_one_detail() -> None:
    with closing(ledger_in_memory()) as db:
        for n, share in enumerate(("51 %", "63 %", "100 %")):
            commit(db, replace(fingerprinted(n, n), marks=(Mark(MarkReason.HIDDEN, share),)))
        [found] = marks.mark_counts(db)
        assert (found.reason, found.detail, found.stories) == (MarkReason.HIDDEN, "", 3)


def test_a_mark_keeps_its_time_until_a_reading_does_not_find_it() -> None:
    marked = replace(fingerprinted(1, 1), marks=(Mark(MarkReason.HIDDEN, "63 %"),))
    with closing(ledger_in_memory()) as db:
        commit(db, marked)
        db.execute("UPDATE marks SET marked_at = 7")
        commit(db, replace(marked, fingerprint=fingerprinted(1, 2).fingerprint))
        assert db.execute("SELECT marked_at FROM marks").fetchall() == [(7,)]
        commit(db, fingerprinted(1, 3))
        commit(db, marked)
        assert db.execute("SELECT marked_at FROM marks WHERE marked_at > 7").fetchall(), "the mark is a new one"


def test_a_story_that_was_forgotten_while_its_page_was_read_is_not_marked() -> None:
    with closing(ledger_in_memory()) as db:
        stories.forget(db, 1)
        commit(db, Skipped(Story(1, HINDI), Skip.EMPTY, marks=(Mark(MarkReason.EMPTY, ""),)))
        assert marks.mark_counts(db) == []
