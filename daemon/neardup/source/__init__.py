"""Listings of stories: Athena, a manifest file, and the dead letters, behind one protocol."""

from collections.abc import AsyncIterator
from typing import Protocol

from neardup.records import Checkpoint, ListedRow


class Source(Protocol):
    """A listing of stories.

    `name` identifies it in a checkpoint; `size` is its length in the unit of positions (0: not known yet).
    """

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...

    def stories(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedRow]:
        """All stories, or those updated at or after `since` (milliseconds since 1970).

        Continues from `resume` if that is a checkpoint of this listing.
        """
        ...
