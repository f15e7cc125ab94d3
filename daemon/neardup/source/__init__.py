"""Who lists the stories: async iterators of `Listed`, by one protocol."""

from collections.abc import AsyncIterator
from typing import Protocol

from neardup.records import Checkpoint, Listed


class Source(Protocol):
    """A listing of stories.

    `name` is what a checkpoint knows it by, and `size` its length in bytes (0: not known yet).
    """

    name: str
    size: int

    def stories(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[Listed]:
        """All stories, or those updated at or after `since` (milliseconds); from `resume` on, if it applies."""
        ...
