"""Laws: the listed stories are the selected ones, those marked last first, and the counts of the authors add up."""

from collections import Counter
from contextlib import closing
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.ledger import marks, stories
from neardup.ledger.marks import MarkedAuthor, MarkedStory, MarkFilter
from neardup.records import Fingerprinted, Language, Mark, MarkReason, Skip, Skipped, Story

from tests.support.builders import commit, fingerprinted, ledger_in_memory
from tests.support.languages import HINDI, SAMPLED, TAMIL

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


def is_chosen(one: Fingerprinted | Skipped, choice: MarkFilter) -> bool:
    reasons = [mark.reason for mark in one.marks or ()]
    return (
        one.story.id >= 0
        and bool(reasons)
        and choice.reason in {None, *reasons}
        and (not choice.languages or one.story.language in choice.languages)
        and choice.author in {None, one.story.author_id}
    )


@settings(deadline=None, max_examples=100)
@given(outcomes(), CHOICES, st.integers(1, 9))
def test_the_selected_stories_are_listed_and_counted(
    made: list[Fingerprinted | Skipped], choice: MarkFilter, limit: int
) -> None:
    expected = [one for one in made if is_chosen(one, choice)]
    with closing(ledger_in_memory()) as db:
        commit(db, *made)
        db.execute("UPDATE marks SET marked_at = story_id % 5")
        listed = marks.list_stories(db, choice)
        assert listed == sorted(map(shown, expected), key=lambda one: (-one.marked_at, -one.story_id))
        assert marks.list_stories(db, choice, limit) == listed[:limit]
        total, reasons = marks.count_stories(db, choice)
        assert (total, reasons) == (len(expected), reasons_of(expected))
        authors = marks.list_authors(db, choice)
        assert marks.list_authors(db, choice, limit) == authors[:limit]
        assert sum(author.stories for author in authors) == total, "the counts by author do not add up"
        for author in authors:
            own = [one for one in expected if one.story.author_id == author.author_id]
            assert author == MarkedAuthor(author.author_id, len(own), reasons_of(own))
        found = marks.of_stories(db, [one.story_id for one in listed])
        assert found == {one.story_id: one.marks for one in listed}


def shown(one: Fingerprinted | Skipped) -> MarkedStory:
    story = one.story
    return MarkedStory(
        story.id, None, story.language, story.author_id, story.title or "", one.marks or (), story.id % 5
    )


def reasons_of(some: list[Fingerprinted | Skipped]) -> dict[str, int]:
    return dict(Counter(mark.reason for one in some for mark in one.marks or ()))


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
        assert not stories.stored_versions(db, [1])
        [found] = marks.list_stories(db, MarkFilter())
        assert (found.name, found.title, found.author_id) == ("tale", "pages/1.html", "b")
        assert found.marks == (Mark(MarkReason.NOT_TEXT, ""),)
