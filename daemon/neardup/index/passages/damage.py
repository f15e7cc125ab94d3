"""Reading a segment from end to end, to find damage."""

from typing import NamedTuple

from neardup.errors import PassagesDamaged
from neardup.index.passages.folder import SegmentFile
from neardup.index.passages.layout import HeaderDamaged
from neardup.index.passages.segment import Segment


class Damage(NamedTuple):
    """A damaged segment, by its file name, the first and the last number that it holds, and what is wrong."""

    segment: str
    first: int
    last: int
    reason: str


class Checked(NamedTuple):
    """A segment that was read: its last number, and what is wrong."""

    last: int
    damage: Damage | None


def damage_of(one: SegmentFile) -> Damage | None:
    """What is wrong with a segment; None if nothing is, or if it was removed meanwhile."""
    try:
        Segment(one.path).verify()
    except FileNotFoundError:  # merged meanwhile
        return None
    except HeaderDamaged as error:
        return Damage(one.path.name, one.first, one.last, str(error))
    except PassagesDamaged:
        return Damage(one.path.name, one.first, one.last, "a block is not what was written, or cannot be read")
    return None
