"""The marks of a page and of its text: what is unusual about them, and how much of it takes a mark."""

from neardup.core.text.characters import Characters
from neardup.core.text.disguise import disguise
from neardup.core.text.html import Extracted
from neardup.records import Limit, Mark, MarkReason, Marks, Skip

MOST_HIDDEN = 0.5  # of the characters of a page; one in a hundred real pages hides more
OF_SKIPS = {Skip.EMPTY, Skip.NOT_TEXT, Skip.OVER_BUDGET}


def page_marks(found: Extracted, *, is_cut: bool = False) -> Marks:
    """The marks of a page that was read, and of which perhaps only the beginning was there."""
    limit = Limit.SIZE if is_cut else found.limit
    truncated = () if limit is None else (Mark(MarkReason.TRUNCATED, limit),)
    return truncated + (_share(MarkReason.HIDDEN, found.hidden) if found.hidden > MOST_HIDDEN else ())


def text_marks(text: str | bytes, counts: Characters) -> Marks:
    """The marks of a text with these counts; bytes are UTF-8."""
    look_alikes, controls = disguise(text, counts)
    marks = _share(MarkReason.LOOK_ALIKES, look_alikes) if look_alikes else ()
    return marks + (_share(MarkReason.CONTROLS, controls) if controls else ())


def skip_marks(reason: Skip) -> Marks:
    """The mark of a story that was skipped for this reason, if it takes one."""
    return (Mark(MarkReason(reason), ""),) if reason in OF_SKIPS else ()


def _share(reason: MarkReason, share: float) -> Marks:
    return (Mark(reason, f"{100 * share:.0f} %"),)
