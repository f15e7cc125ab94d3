"""How the elements of a page look, computed once for elements that inherit one style and declare the same values."""

from typing import NamedTuple

from neardup.core.text.boxes import Values, is_low, is_unseen
from neardup.core.text.computed_style import Style, computed
from neardup.core.text.css import HIDING_DISPLAYS


class Look(NamedTuple):
    """The style of an element, whether nothing in its box is seen, and whether the box is clipped to a line."""

    style: Style
    is_unseen: bool
    is_low: bool


MOST_LOOKS = 2_000  # that are kept


class Looks:
    """The looks of elements, by the styles that they inherit, their values and their display."""

    def __init__(self) -> None:
        # The styles and values are kept, so that their ids stay.
        self._known: dict[tuple[int, int, str], tuple[Look, Style, Values]] = {}

    def of(self, parent: Style, values: Values, display: str) -> Look:
        """The look of an element in `parent`."""
        if not values:
            return Look(parent, display in HIDING_DISPLAYS, is_low=False)
        key = id(parent), id(values), display
        if (found := self._known.get(key)) is None:
            if len(self._known) == MOST_LOOKS:
                self._known.clear()
            style = computed(parent, values)
            look = Look(style, is_unseen(values, display, style.size), is_low(values, style.size))
            found = self._known[key] = look, parent, values
        return found[0]
