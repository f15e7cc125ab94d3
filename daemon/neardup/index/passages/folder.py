"""The segments in a folder: which there are, which are merged, and which are damaged.

The folder is the only record of them: there is no list that could be lost or disagree.  A segment's name has its range
of numbers and a generation, and appears when the segment is complete and durable.  A segment that replaces others (a
merge) has a higher generation and covers their ranges.  So if the process ends between the new segment and the removal
of the old ones, the old ones are seen to be replaced, and are removed by the next change.

Each segment costs a lookup a read for each hash, and a merge writes its segments again.  The oldest segment is merged
with all the newer ones when together they have a quarter of its size: so nearly all postings are in one segment, and
a posting is written five times while the index grows.  Until then the newer ones are merged among themselves, when
they are FAN_IN, by the same rule.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from neardup.core.candidates.banding import Numbers
from neardup.errors import Fatal, PassagesDamaged
from neardup.index.passages.postings import overlaps
from neardup.index.passages.segment import NAME, PARTIAL, SUFFIX, HeaderDamaged, Segment, make_name
from neardup.sqlite import sync_folder

GROWTH = 4
FAN_IN = 8
MAX_POSTINGS = 1 << 32  # of a segment; its directory has offsets of 32 bits
NUMBERS_A_CALL = 1 << 20  # that `IsLive` is asked about

Marks = npt.NDArray[np.bool_]  # of numbers
IsLive = Callable[[Numbers], Marks]


class SegmentFile(Struct, frozen=True):
    """A segment in the folder, by its name; `segment` is None if it cannot be opened, because of `damage`."""

    path: Path
    generation: int
    first: int
    last: int
    inode: int
    segment: Segment | None = None
    damage: str = ""

    @property
    def identity(self) -> tuple[Path, int]:
        """Which file it is, whether it was opened or not."""
        return self.path, self.inode

    def get_segment(self) -> Segment:
        """The segment.  Raises PassagesDamaged if it cannot be opened."""
        if self.segment is None:
            raise PassagesDamaged(self.path.name, self.first, self.last)
        return self.segment


def list_segments(folder: Path) -> list[SegmentFile]:
    """The segments in a folder that no other segment replaces, by their ranges; not opened."""
    current: list[SegmentFile] = []
    for file in sorted(_list_segments(folder), key=lambda file: -file.generation):
        if not overlaps([(other.first, other.last) for other in current], file.first, file.last):
            current.append(file)
    return sorted(current, key=lambda file: file.first)


def open_segment(file: SegmentFile, ledger: str, algorithm: str) -> SegmentFile:
    """The same segment, opened.

    Raises Fatal for another ledger's or algorithm's, and FileNotFoundError if it has been removed meanwhile.
    """
    try:
        segment = Segment(file.path)
    except HeaderDamaged as error:
        return replace(file, damage=str(error))
    header = segment.header
    if (header.ledger, header.algorithm) != (ledger, algorithm):
        whose = "another ledger" if header.ledger != ledger else f"algorithm {header.algorithm}, not {algorithm}"
        raise Fatal(f"the passage index {file.path.parent} is of {whose}")
    if (header.first, header.last) != (file.first, file.last):
        return replace(file, damage="its name and its header differ")
    return replace(file, segment=segment)


def make_next_path(folder: Path, first: int, last: int) -> Path:
    """The path of a new segment that replaces all in the folder that it covers."""
    generation = max((file.generation for file in _list_segments(folder)), default=0) + 1
    return folder / make_name(generation, first, last)


def remove_leftovers(folder: Path, current: Iterable[SegmentFile]) -> None:
    """Remove the segments that others replace, and what an interrupted write has left.

    Only the process that writes may call it.
    """
    folder.mkdir(mode=0o750, exist_ok=True)  # someone may have removed it
    kept = {file.path.name for file in current}
    for path in folder.iterdir():
        if path.name.endswith((SUFFIX, PARTIAL)) and path.name not in kept:
            path.unlink()
    sync_folder(folder)


def _list_segments(folder: Path) -> list[SegmentFile]:
    found: list[SegmentFile] = []
    for path in folder.iterdir() if folder.is_dir() else ():
        if match := NAME.fullmatch(path.name):
            try:
                generation, first, last = map(int, match.groups())
                found.append(SegmentFile(path, generation, first, last, path.stat().st_ino))
            except FileNotFoundError:  # another process has merged it
                continue
    return found


def choose_segments_to_merge(segments: Sequence[SegmentFile]) -> Sequence[SegmentFile]:
    """The segments to merge next, in ascending order; none if no merge is due.

    Only segments without a gap between their ranges are merged, because a merged segment holds one range.  A damaged
    segment is not merged.
    """
    for group in _list_adjacent(segments):
        sizes = [file.get_segment().header.file_bytes for file in group]
        postings = [file.get_segment().header.postings for file in group]
        for n, size in enumerate(sizes[:-1]):
            large_enough = GROWTH * sum(sizes[n + 1 :]) >= size
            if large_enough and (n == 0 or len(group) - n >= FAN_IN) and sum(postings[n:]) < MAX_POSTINGS:
                return group[n:]
    return []


def _list_adjacent(segments: Sequence[SegmentFile]) -> Iterator[list[SegmentFile]]:
    group: list[SegmentFile] = []
    for file in segments:
        if group and (file.segment is None or group[-1].last + 1 != file.first):
            yield group
            group = []
        if file.segment is not None:
            group.append(file)
    yield group


def mark_live(first: int, last: int, is_live: IsLive) -> Marks:
    """Which of the numbers `first` to `last` are of current stories."""
    parts = [
        is_live(np.arange(start, min(start + NUMBERS_A_CALL, last + 1), dtype=np.uint32))
        for start in range(first, last + 1, NUMBERS_A_CALL)
    ]
    return np.concatenate([np.empty(0, np.bool_), *parts])


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


def find_damage(file: SegmentFile) -> Damage | None:
    """What is wrong with a segment; None if nothing is, or if it was removed meanwhile."""
    try:
        Segment(file.path).verify()
    except FileNotFoundError:  # merged meanwhile
        return None
    except HeaderDamaged as error:
        return Damage(file.path.name, file.first, file.last, str(error))
    except PassagesDamaged:
        return Damage(file.path.name, file.first, file.last, "a block is not what was written, or cannot be read")
    return None
