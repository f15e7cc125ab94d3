"""Laws: a story has the marks of the last reading of its page, until it is forgotten or all are read again."""

from contextlib import closing
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.ledger import marks, stories
from neardup.ledger.restart import restart
from neardup.records import Mark, MarkReason, Marks, Skip, Skipped, Story

from tests.support.builders import commit, fingerprinted, ledger_in_memory
from tests.support.languages import HINDI, TAMIL

IDS = st.integers(1, 3)
FOUND: st.SearchStrategy[Marks] = st.sampled_from([(), (Mark(MarkReason.MISLABELLED, "Tamil"),)])
READINGS = st.lists(st.tuples(st.sampled_from(["new text", "same text", "not read", "forgotten"]), IDS, FOUND))


@settings(deadline=None, max_examples=50)
@given(READINGS)
def test_marks_are_those_of_the_last_reading(readings: list[tuple[str, int, Marks]]) -> None:
    expected: dict[int, Marks] = {}
    with closing(ledger_in_memory()) as db:
        for number, (event, story_id, found) in enumerate(readings):
            gone = story_id not in expected or event == "new text"
            if event == "forgotten":
                stories.forget(db, story_id)
                db.execute("DELETE FROM forgotten")
                expected.pop(story_id, None)
            elif event == "not read":
                commit(db, Skipped(Story(story_id, HINDI), Skip.UNCHANGED))
            elif gone:
                commit(db, replace(fingerprinted(story_id, number + 1), marks=found))
                expected[story_id] = found
            else:
                commit(db, Skipped(Story(story_id, HINDI), Skip.UNCHANGED, marks=found))
                expected[story_id] = found
        held = db.execute("SELECT story_id, reason, detail FROM marks ORDER BY story_id").fetchall()
        assert held == [(n, m.reason, m.detail) for n in sorted(expected) for m in expected[n]], readings
        restart(db, "v2", "")
        assert marks.counts(db) == []


def test_marks_are_counted_by_reason_language_and_detail() -> None:
    with closing(ledger_in_memory()) as db:
        for n, language, script in ((1, HINDI, "Tamil"), (2, HINDI, "Tamil"), (3, HINDI, "Latin"), (4, TAMIL, "Latin")):
            commit(db, replace(fingerprinted(n, n, language), marks=(Mark(MarkReason.MISLABELLED, script),)))
        found = marks.counts(db)
        tally = [(one.language, one.detail, one.stories) for one in found]
        assert tally == [(HINDI, "Latin", 1), (HINDI, "Tamil", 2), (TAMIL, "Latin", 1)]
        assert [one.example for one in found if one.stories == 1] == [3, 4]
