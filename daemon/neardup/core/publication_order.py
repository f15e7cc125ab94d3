"""Which stories were published before which, and how sure that is.  Everything that shows an order reads it from here.

Only the dates of publication in the listing decide.  Ids, the order of arrival and neardup's own clock never stand for
one.  A work of the reference is earlier than every story of the platform, whatever its date.  The views `pairs` and
`sources` of the ledger sort as `make_sort_key` does, but for the order of two works.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from neardup.records import is_work

Side = Literal["a", "b"]


class Dates(Struct, frozen=True):
    """The dates of a story in milliseconds since 1970, None where one is not known.

    The listing gives `published` and `updated`; `known_since` is when neardup recorded the story, by its own clock.
    `catalogue` is that of a work of the reference, None for a story of the platform.
    """

    published: int | None = None
    updated: int | None = None
    known_since: int | None = None
    catalogue: str | None = None


class PublicationOrder(Struct, frozen=True):
    """The order of publication of two stories: `earlier` is None where it is not known.

    `ahead` (ms) is None where the dates of publication do not decide.  `is_updated_since` says that the earlier story
    was updated after the later one was published, so that words they share may be newer in it.
    """

    earlier: Side | None
    ahead: int | None
    is_updated_since: bool


def find_order(a: Dates, b: Dates) -> PublicationOrder:
    """The order of publication of two stories."""
    side = find_earlier(a, b)
    if a.catalogue is not None or b.catalogue is not None or a.published is None or b.published is None or side is None:
        return PublicationOrder(side, None, is_updated_since=False)
    updated = a.updated if side == "a" else b.updated
    is_updated_since = updated is not None and updated > max(a.published, b.published)
    return PublicationOrder(side, abs(a.published - b.published), is_updated_since)


def find_earlier(a: Dates, b: Dates) -> Side | None:
    """Which of two stories was published before the other; None if that is not known."""
    if (a.catalogue is None) != (b.catalogue is None):
        return "b" if a.catalogue is None else "a"
    if a.published is None or b.published is None or a.published == b.published:
        return None
    return "a" if a.published < b.published else "b"


def find_earliest(published: Mapping[int, int | None]) -> int | None:
    """Which story of several, by their dates of publication, was published before all others.

    None if that is not known: a story without a date may be the earliest, and several may have the same date.  Where
    there are works of the reference, it is one of these.
    """
    works = {story: time for story, time in published.items() if is_work(story)}
    if len(works) == 1:
        return next(iter(works))
    published = works or published
    times = [time for time in published.values() if time is not None]
    if len(times) < len(published) or times.count(min(times, default=0)) != 1:
        return None
    return min(published, key=lambda story: published[story] or 0)


def make_sort_key(published: int | None, story_id: int) -> tuple[bool, bool, int, int]:
    """Sorts stories by publication: works of the reference are before others, stories without a date come last.

    Of equal dates the lowest id is before others.  That and the place of stories without a date say nothing about
    publication: they only make the order the same every time.
    """
    return not is_work(story_id), published is None, published or 0, story_id
