"""Ids of stories in the API: an integer, or the name of a story that is listed with another id."""

from typing import NamedTuple

from neardup.source.parse import id_of, name_of

ShownId = int | str


class StoryId(NamedTuple):
    """A story's integer, and its name, None for a story that is listed with the integer."""

    number: int
    name: str | None

    @property
    def shown(self) -> ShownId:
        """The id as a listing has it."""
        return shown(self.number, self.name)


def story_id_of(listed: ShownId) -> StoryId:
    """The story with this id in a listing.  Raises ValueError for a text that is no id."""
    return StoryId(id_of(str(listed)), name_of(str(listed)))


def shown(number: int, name: str | None) -> ShownId:
    """The id of a story on record as a listing has it."""
    return number if name is None else name
