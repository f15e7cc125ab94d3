"""The order of publication in words, and why one story is called earlier: `core.publication_order` decides.

No word of an order is said where the order is not known.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from neardup.core.publication_order import Dates, earlier, order_of
from neardup.core.verify.clusters import Cluster
from neardup.ledger.similarities import Similarity, Source
from neardup.moderation.interface import gettext, marked, number
from neardup.query.evidence import Evidence, StoryFacts
from neardup.query.similarity import SimilarityReport
from neardup.records import is_work, milliseconds, rfc3339

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
UNITS = {  # of a plural
    marked("%(n)s years"): 365 * DAY,
    marked("%(n)s months"): 30 * DAY,
    marked("%(n)s days"): DAY,
    marked("%(n)s hours"): timedelta(hours=1),
    marked("%(n)s minutes"): timedelta(minutes=1),
    marked("%(n)s seconds"): SECOND,
}
LISTING, OWN_CLOCK = marked("listing"), marked("neardup’s clock")


def duration(length: timedelta) -> str:
    """A duration in the largest unit of which it has at least two: 3 days, 36 hours."""
    for name, unit in UNITS.items():
        if length >= 2 * unit:
            return gettext(name) % {"n": number(length // unit)}
    return gettext("a second") if length >= SECOND else gettext("less than a second")


def dates_of_row(row: Mapping[str, Any], prefix: str = "", catalogue: str | None = None) -> Dates:
    """The dates in a row of the ledger, whose columns have this prefix."""
    return Dates(row[f"{prefix}published_at"], row[f"{prefix}updated_at"], row[f"{prefix}known_since"], catalogue)


def dates_of(about: StoryFacts) -> Dates:
    """The dates of a story that is compared."""
    published, updated, known = map(milliseconds, (about.published_at, about.updated_at, about.known_since))
    return Dates(published, updated, known, about.catalogue)


def dated(dates: Dates) -> list[tuple[str, str, str]]:
    """The known dates of a story: what happened, the time (RFC 3339), and who says so.

    An update is listed only if it came after the publication.
    """
    published, updated = dates.published, dates.updated
    shown = [
        (gettext("published"), published, LISTING),
        (
            gettext("updated"),
            updated if updated is not None and (published is None or updated > published) else None,
            LISTING,
        ),
        (gettext("known to neardup since"), dates.known_since, OWN_CLOCK),
    ]
    return [(what, time, gettext(source)) for what, at, source in shown if (time := rfc3339(at)) is not None]


def pair_order(facts: Evidence) -> str:
    """Which of two stories, A and B, was published before the other, and by what."""
    return _order("A", "B", dates_of(facts.a), dates_of(facts.b))


def row_order(row: Mapping[str, Any]) -> str:
    """Which story of a flag (a row of the view `pairs`) was published before the other, and by what."""
    one, other = (str(row[f"{side}_name"] or row[f"{side}_id"]) for side in ("matched", "story"))
    return _order(one, other, dates_of_row(row, "matched_", row["catalogue"]), dates_of_row(row, "story_"))


def source_order(found: Similarity, source: Source) -> str:
    """Whether a source was published before the story, and by what."""
    return _order(gettext("the source"), gettext("the story"), source.dates, found.dates)


def top_source_order(row: Mapping[str, Any]) -> str:
    """Whether the largest source of a story was published before it, and by what; `row` is one of `copying_stories`."""
    one, other = (
        str(row[f"{side}name"] or row[f"{side}{'id' if side else 'story_id'}"]) for side in ("top_source_", "")
    )
    source = dates_of_row(row, "top_source_", row["top_source_catalogue"])
    return _order(one, other, source, dates_of_row(row))


def _order(one: str, other: str, a: Dates, b: Dates) -> str:
    order = order_of(a, b)
    for name, dates in ((one, a), (other, b)):
        if dates.catalogue is not None:
            shown = {"work": name, "catalogue": dates.catalogue}
            return gettext("%(work)s is a work of the catalogue %(catalogue)s") % shown
    if order.ahead is None:
        missing = [name for name, dates in ((one, a), (other, b)) if dates.published is None]
        if not missing:
            return gettext("the order of publication is not known: the listing gives both the same date")
        which = gettext("%(one)s and %(other)s") % {"one": one, "other": other} if len(missing) == 2 else missing[0]
        return gettext("the order of publication is not known: the listing has no date of %(which)s") % {"which": which}
    before, after = (one, other) if order.earlier == "a" else (other, one)
    shown = {"before": before, "after": after, "ahead": duration(timedelta(milliseconds=order.ahead))}
    if order.is_updated_since:
        return (
            gettext(
                "%(before)s was published %(ahead)s before %(after)s, by the listing, and updated after %(after)s was"
                " published"
            )
            % shown
        )
    return gettext("%(before)s was published %(ahead)s before %(after)s, by the listing") % shown


def stories_by_others(found: Similarity | SimilarityReport) -> str:
    """What the sources of a story are called: "earlier" only if all of them are known to be."""
    return "stories by others" if of_unknown_order(found) else "earlier stories by others"


def of_unknown_order(found: Similarity | SimilarityReport) -> int:
    """The number of sources of which it is not known that they were published before the story."""
    story = Dates(_milliseconds(found.published_at))
    sources = [Dates(_milliseconds(one.published_at), catalogue=one.catalogue) for one in found.sources]
    return sum(earlier(source, story) != "a" for source in sources)


def _milliseconds(time: int | str | None) -> int | None:
    return milliseconds(time) if isinstance(time, str) else time


def cluster_order(cluster: Cluster) -> str:
    """In what order the stories of a cluster are listed, and which of them was published before all others."""
    if is_work(cluster.stories[0]):
        return gettext("Works of the reference come first, then the others in order of publication, by the listing.")
    if cluster.earliest is not None:
        return gettext("In order of publication, by the listing; the first is likely the original.")
    if not cluster.undated:
        return gettext(
            "In order of publication, by the listing. Several have the same date: the original is not known."
        )
    if cluster.undated == len(cluster.stories):
        return gettext(
            "In the order of their ids. The listing has no date of publication, so their order is not known."
        )
    unknown = gettext(
        "The original is not known: %(undated)s of %(stories)s stories have no date of publication. The others precede"
        " them, in order of publication, by the listing."
    )
    return unknown % {"undated": number(cluster.undated), "stories": number(len(cluster.stories))}
