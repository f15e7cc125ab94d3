"""The segments in a folder.  The folder is the only record of them: there is no list that could be lost or disagree.

A segment's name has its range of numbers and a generation, and appears when the segment is complete and durable.  A
segment that replaces others (a merge) has a higher generation and covers their ranges.  So if the process ends between
the new segment and the removal of the old ones, the old ones are seen to be replaced, and are removed by the next
change.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from neardup.durability import sync_folder
from neardup.errors import Fatal, PassagesDamaged
from neardup.index.passages.layout import NAME, SUFFIX, HeaderDamaged, file_name
from neardup.index.passages.ranges import overlaps
from neardup.index.passages.segment import Segment
from neardup.index.passages.writer import PARTIAL


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment in the folder, by its name; `segment` is None if it cannot be opened, because of `damage`."""

    path: Path
    generation: int
    first: int
    last: int
    inode: int
    segment: Segment | None = field(default=None, compare=False)
    damage: str = field(default="", compare=False)

    def usable(self) -> Segment:
        """The segment.  Raises PassagesDamaged if it cannot be opened."""
        if self.segment is None:
            raise PassagesDamaged(self.path.name, self.first, self.last)
        return self.segment


def listed(folder: Path) -> list[SegmentFile]:
    """The segments in a folder that no other one replaces, by their ranges; not opened."""
    current: list[SegmentFile] = []
    for one in sorted(_all(folder), key=lambda one: -one.generation):
        if not overlaps([(other.first, other.last) for other in current], one.first, one.last):
            current.append(one)
    return sorted(current, key=lambda one: one.first)


def opened(one: SegmentFile, ledger: str, algorithm: str) -> SegmentFile:
    """The same segment, opened.

    Raises Fatal for another ledger's or algorithm's, and FileNotFoundError if it has been removed meanwhile.
    """
    place = one.path, one.generation, one.first, one.last, one.inode
    try:
        segment = Segment(one.path)
    except HeaderDamaged as error:
        return SegmentFile(*place, damage=str(error))
    header = segment.header
    if (header.ledger, header.algorithm) != (ledger, algorithm):
        whose = "another ledger" if header.ledger != ledger else f"algorithm {header.algorithm}, not {algorithm}"
        raise Fatal(f"the passage index {one.path.parent} is of {whose}")
    if (header.first, header.last) != (one.first, one.last):
        return SegmentFile(*place, damage="its name and its header differ")
    return SegmentFile(*place, segment=segment)


def next_path(folder: Path, first: int, last: int) -> Path:
    """The path of a new segment that replaces all in the folder that it covers."""
    generation = max((one.generation for one in _all(folder)), default=0) + 1
    return folder / file_name(generation, first, last)


def remove_leftovers(folder: Path, current: Iterable[SegmentFile]) -> None:
    """Remove the segments that others replace, and what an interrupted write has left.

    Only the process that writes may call it.
    """
    folder.mkdir(mode=0o750, exist_ok=True)  # someone may have removed it
    kept = {one.path.name for one in current}
    for path in folder.iterdir():
        if path.name.endswith((SUFFIX, PARTIAL)) and path.name not in kept:
            path.unlink()
    sync_folder(folder)


def _all(folder: Path) -> list[SegmentFile]:
    found: list[SegmentFile] = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if match := NAME.fullmatch(path.name):
            try:
                generation, first, last = map(int, match.groups())
                found.append(SegmentFile(path, generation, first, last, path.stat().st_ino))
            except FileNotFoundError:  # another process has merged it
                continue
    return found
