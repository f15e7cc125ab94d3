"""How a browser displays an element: as a block, within a line, or not at all."""

from neardup.core.text.boxes import Values
from neardup.core.text.cascade import Attributes
from neardup.core.text.elements import BLOCKS, BREAKING, CONTROLS, NOT_SHOWN


def display_of(tag: str, attributes: Attributes, values: Values) -> str:
    """The value of `display` that an element has, by its declared values or by its tag."""
    display = values.get("display", "none" if "hidden" in attributes else "revert")
    if display == "revert":
        return _without_styles(tag, attributes)
    if tag == "html" and display != "none":
        return "block"
    return "inline-block" if display == "inline" and tag in CONTROLS else display


def _without_styles(tag: str, attributes: Attributes) -> str:
    if tag in NOT_SHOWN or "popover" in attributes or (tag == "dialog" and "open" not in attributes):
        return "none"
    return "block" if tag in BLOCKS else "inline-block" if tag in CONTROLS else "inline"


def is_block(display: str) -> bool:
    """Whether it breaks the line that it stands in."""
    words = display.split()
    return "inline" not in words and not BREAKING.isdisjoint(words)
