"""Listed stories and their outcomes in columns, the form in which they move through the pipeline.

A column is a list or an array with one value a story.  So no object is made for a story that has nothing unusual; what
is unusual leaves the columns and becomes an object.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Self

from msgspec import Struct

from neardup.core.packed_page import NO_PAGES, PackedPages
from neardup.core.page import PageFingerprinted
from neardup.records import BadRow, BandedFingerprint, DeadLettered, Fingerprinted, Language, Outcome, Skipped, Story

Key = int | str  # the id of a story, or the key of a row that describes none


class StoryColumns(Struct, frozen=True):
    """N listed stories: the fields of `Story` in their order, each as a list."""

    ids: list[int]
    languages: list[Language]
    paths: list[str | None]
    author_ids: list[str | None]
    titles: list[str | None]
    published_at: list[int | None]
    updated_at: list[int | None]
    positions: list[int]
    names: list[str | None]
    catalogues: list[str | None]
    licences: list[str | None]
    series_ids: list[str | None]

    @classmethod
    def of(cls, stories: Iterable[Story]) -> Self:
        rows = map(attrgetter(*Story.__struct_fields__), stories)
        return cls(*(list(column) for column in tuple(zip(*rows, strict=True)) or ((),) * len(Story.__struct_fields__)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        if not parts:
            return cls.of(())
        columns = zip(*(part.columns for part in parts), strict=True)
        return cls(*(list(chain.from_iterable(column)) for column in columns))

    @property
    def columns(self) -> tuple[list[Any], ...]:
        columns: tuple[list[Any], ...] = _columns_of(self)
        return columns

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(*(column[rows] for column in self.columns))

    def take(self, places: Sequence[int]) -> Self:
        """The stories at these places."""
        return type(self)(*([column[n] for n in places] for column in self.columns))

    def story(self, n: int) -> Story:
        """One story as an object."""
        return Story(*(column[n] for column in self.columns))

    def stories(self) -> Iterator[Story]:
        """All stories as objects."""
        return map(Story, *self.columns)


_columns_of = attrgetter(*StoryColumns.__struct_fields__)
ListedBlock = StoryColumns | BadRow  # what a listing consists of, in its order


class FingerprintedStories(Struct, frozen=True):
    """N stories that are new or whose texts have changed: the columns of `Fingerprinted`.

    `page_titles` name those that the listing does not.
    """

    stories: StoryColumns
    pages: PackedPages
    page_titles: list[str | None]

    @classmethod
    def of(cls, made: Iterable[Fingerprinted]) -> Self:
        made = list(made)
        pages = PackedPages.of(
            PageFingerprinted(
                story.fingerprint,
                story.etag,
                0,
                marks=story.marks,
                measures=story.measures,
                text_sha256=story.text_sha256,
            )
            for story in made
        )
        return cls(StoryColumns.of(outcome.story for outcome in made), pages, [outcome.page_title for outcome in made])

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        return cls(
            StoryColumns.concatenate([part.stories for part in parts]),
            PackedPages.concatenate([part.pages for part in parts]),
            [title for part in parts for title in part.page_titles],
        )

    def __len__(self) -> int:
        return len(self.stories)

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(self.stories[rows], self.pages[rows], self.page_titles[rows])

    def take(self, places: Sequence[int]) -> Self:
        """The stories at these places."""
        return type(self)(self.stories.take(places), self.pages.take(places), [self.page_titles[n] for n in places])

    def band_fingerprints(self) -> list[BandedFingerprint]:
        """What an index stores each by."""
        return list(map(BandedFingerprint, self.stories.languages, self.pages.simhashes, self.pages.signatures))

    def objects(self) -> Iterator[Fingerprinted]:
        """All stories as objects."""
        for n, story in enumerate(self.stories.stories()):
            page = self.pages.page(n)
            about = page.etag, self.page_titles[n], page.marks, page.measures, page.text_sha256
            yield Fingerprinted(story, page.fingerprint, *about)


class Outcomes(Struct, frozen=True):
    """The outcomes of distinct stories and rows: of those that were fingerprinted in columns, all others as objects."""

    made: FingerprintedStories
    others: list[Skipped | DeadLettered]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Self:
        outcomes = list(outcomes)
        made = FingerprintedStories.of(outcome for outcome in outcomes if isinstance(outcome, Fingerprinted))
        return cls(made, [outcome for outcome in outcomes if not isinstance(outcome, Fingerprinted)])

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        made = FingerprintedStories.concatenate([part.made for part in parts if len(part.made)])
        return cls(made, [outcome for part in parts for outcome in part.others])

    @property
    def keys(self) -> list[Key]:
        """The key of each, in the order of slices."""
        return [*self.made.stories.ids, *(get_key(outcome.story) for outcome in self.others)]

    def __len__(self) -> int:
        return len(self.made) + len(self.others)

    def __getitem__(self, rows: slice) -> Self:
        start, stop, _ = rows.indices(len(self))
        n = len(self.made)
        return type(self)(self.made[min(start, n) : min(stop, n)], self.others[max(start - n, 0) : max(stop - n, 0)])

    def objects(self) -> list[Outcome]:
        """All outcomes as objects."""
        return [*self.made.objects(), *self.others]


NONE_MADE = FingerprintedStories(StoryColumns.of(()), NO_PAGES, [])


def get_key(row: Story | BadRow) -> Key:
    """The key of a row among those in progress."""
    return row.id if isinstance(row, Story) else row.key
