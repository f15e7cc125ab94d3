"""Laws: a story has the marks of the last reading of its page; the lists and counts of marked stories add up."""

from collections import Counter
from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from neardup.ledger import marks, stories
from neardup.ledger.marks import MarkedAuthor, MarkedStory, MarkFilter
from neardup.ledger.stories import remove_all
from neardup.records import Fingerprinted, Language, Mark, MarkReason, Marks, Skip, Skipped, Story

from tests.support.builders import commit, fingerprinted, ledger_in_memory
from tests.support.languages import HINDI, SAMPLED, TAMIL
from tests.support.sampling import count_examples

IDS = st.integers(1, 3)
FOUND: st.SearchStrategy[Marks] = st.sampled_from(
    [(), (Mark(MarkReason.MISLABELLED, "Tamil"),), (Mark(MarkReason.HIDDEN, "63 %"), Mark(MarkReason.EMPTY, ""))]
)
EVENTS = ["new text", "same text", "no text", "not read", "missing", "forgotten"]
READINGS = st.lists(st.tuples(st.sampled_from(EVENTS), IDS, FOUND))


@settings(deadline=None, max_examples=count_examples(50))
@given(READINGS)
def test_marks_are_those_of_the_last_reading(readings: list[tuple[str, int, Marks]]) -> None:
    expected: dict[int, Marks] = {}
    with closing(ledger_in_memory()) as db:
        for number, (event, story_id, found) in enumerate(readings):
            is_known = bool(stories.read_stored_versions(db, [story_id]))
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
        tally = [(outcome.language, outcome.detail, outcome.stories) for outcome in found]
        assert tally == [(HINDI, "Latin", 1), (HINDI, "Tamil", 2), (TAMIL, "Latin", 1)]
        assert [outcome.example for outcome in found if outcome.stories == 1] == [3, 4]


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


MARKS = [
    (),
    *((Mark(reason, "63 %"),) for reason in MarkReason),
    (Mark(MarkReason.CONTROLS, "7 %"), Mark(MarkReason.HIDDEN, "63 %")),
]
AUTHORS = [None, "7", "007", "asha"]


@st.composite
def outcomes(draw: st.DrawFn) -> list[Fingerprinted | Skipped]:
    """The outcomes of distinct stories and works, with or without marks."""
    made: list[Fingerprinted | Skipped] = []
    for n in draw(st.sets(st.integers(-2, 30))):
        language, author = draw(st.sampled_from(SAMPLED)), draw(st.sampled_from(AUTHORS))
        story, marks = Story(n, language, title=f"title {n}", author_id=author), draw(st.sampled_from(MARKS))
        if draw(st.booleans()):
            made.append(replace(fingerprinted(n, n + 9, language), story=story, marks=marks))
        else:
            made.append(Skipped(story, Skip.EMPTY, marks=marks))
    return made


CHOICES = st.builds(
    MarkFilter,
    st.none() | st.sampled_from(list(map(str, MarkReason))),
    st.lists(st.sampled_from(SAMPLED), max_size=3),
    st.sampled_from(AUTHORS),
)


def is_chosen(outcome: Fingerprinted | Skipped, choice: MarkFilter) -> bool:
    reasons = [mark.reason for mark in outcome.marks or ()]
    return (
        outcome.story.id >= 0
        and bool(reasons)
        and choice.reason in {None, *reasons}
        and (not choice.languages or outcome.story.language in choice.languages)
        and choice.author in {None, outcome.story.author_id}
    )


@settings(deadline=None, max_examples=count_examples(100))
@given(outcomes(), CHOICES, st.integers(1, 9))
def test_the_selected_stories_are_listed_and_counted(
    made: list[Fingerprinted | Skipped], choice: MarkFilter, limit: int
) -> None:
    expected = [outcome for outcome in made if is_chosen(outcome, choice)]
    with closing(ledger_in_memory()) as db:
        commit(db, *made)
        db.execute("UPDATE marks SET marked_at = story_id % 5")
        listed = marks.list_stories(db, choice)
        assert listed == sorted(map(shown, expected), key=lambda found: (-found.marked_at, -int(found.story_id)))
        assert marks.list_stories(db, choice, limit) == listed[:limit]
        total, reasons = marks.count_stories(db, choice)
        assert (total, reasons) == (len(expected), reasons_of(expected))
        authors = marks.list_authors(db, choice)
        assert marks.list_authors(db, choice, limit) == authors[:limit]
        assert sum(author.stories for author in authors) == total, "the counts by author do not add up"
        for author in authors:
            own = [outcome for outcome in expected if outcome.story.author_id == author.author_id]
            assert author == MarkedAuthor(author.author_id, len(own), reasons_of(own))
        found = marks.read_marks(db, [int(outcome.story_id) for outcome in listed])
        assert found == {outcome.story_id: outcome.marks for outcome in listed}


def shown(outcome: Fingerprinted | Skipped) -> MarkedStory:
    story = outcome.story
    return MarkedStory(story.id, story.language, story.author_id, story.title or "", outcome.marks or (), story.id % 5)


def reasons_of(some: list[Fingerprinted | Skipped]) -> dict[str, int]:
    return dict(Counter(mark.reason for outcome in some for mark in outcome.marks or ()))


def marked(language: Language = HINDI, author: str | None = "a") -> Fingerprinted:
    made = replace(fingerprinted(1, 1, language), marks=(Mark(MarkReason.HIDDEN, "63 %"),))
    return replace(made, story=Story(1, language, title="old", author_id=author, updated_at=1))


def test_a_marked_story_has_the_author_and_title_of_its_latest_listing() -> None:
    with closing(ledger_in_memory()) as db:
        commit(db, marked(TAMIL))
        commit(db, Skipped(Story(1, TAMIL, title="new", author_id="b", updated_at=2), Skip.UNCHANGED))
        [found] = marks.list_stories(db, MarkFilter(author="b"))
        assert (found.title, found.author_id, found.language) == ("new", "b", TAMIL)
        assert marks.list_stories(db, MarkFilter(author="a")) == []


def test_a_story_without_a_fingerprint_keeps_what_its_listing_says() -> None:
    with closing(ledger_in_memory()) as db:
        commit(db, marked())
        gone = Story(1, HINDI, "pages/1.html", "b", updated_at=2, name="tale")
        commit(db, Skipped(gone, Skip.NOT_TEXT, marks=(Mark(MarkReason.NOT_TEXT, ""),)))
        assert not stories.read_stored_versions(db, [1])
        [found] = marks.list_stories(db, MarkFilter())
        assert (found.story_id, found.title, found.author_id) == ("tale", "pages/1.html", "b")
        assert found.marks == (Mark(MarkReason.NOT_TEXT, ""),)
