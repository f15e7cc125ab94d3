"""The passage index: which stories have a passage hash, in segments on disk and a tail in memory.

A segment holds a range of story numbers and is never changed.  `flush` makes a segment of the tail and is durable when
it returns; a crash before that loses the tail, which the ledger's outbox has.  A small segment is merged with others
later.  One process writes, while any number read; each lookup sees the segments that the folder has then.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Self

import numpy as np

from neardup.core.candidates.banding import Numbers
from neardup.core.candidates.passage_groups import LanguageOf
from neardup.errors import Fatal
from neardup.index.passages.folder import (
    Checked,
    Damage,
    IsLive,
    LiveNumbers,
    SegmentFile,
    choose_segments_to_merge,
    find_damage,
    list_segments,
    make_next_path,
    open_segment,
    remove_leftovers,
)
from neardup.index.passages.join import HashesByStory, JoinStep, join_passages, regroup_by_story
from neardup.index.passages.lookup import THREADS, Found, find_holders, find_postings, look_up
from neardup.index.passages.postings import (
    NO_KEYS,
    Counts,
    Keys,
    PassageHashes,
    Range,
    Row,
    Source,
    get_hashes,
    get_numbers,
    join_ranges,
    list_places,
    overlaps,
    read_stripes,
)
from neardup.index.passages.segment import Header, Segment, SegmentWriter, choose_bits
from neardup.index.passages.tail import Run, Tail, TailView, find_keys
from neardup.sqlite import sync_folder

OPENING_ATTEMPTS = 3  # a segment may be merged, and so removed, after the folder is listed and before it is opened


class PassageIndex:
    """The passage index of one ledger and one version of the passage hashes.  Thread-safe; its methods block."""

    def __init__(self, folder: Path, ledger_id: str, algorithm: str) -> None:
        self._folder, self._ledger_id, self._algorithm = folder, ledger_id, algorithm
        self._segments: tuple[SegmentFile, ...] = ()
        self._tail = Tail()
        self._state = Lock()  # of the two above
        self._writing = Lock()
        self._executor = ThreadPoolExecutor(THREADS, "passages")

    @classmethod
    def open(cls, folder: Path, ledger_id: str, algorithm: str) -> Self:
        """Open the index in a folder, which is created if it does not exist.

        Raises Fatal if a segment is of another ledger, algorithm or format.  A damaged segment raises nothing here.
        """
        folder.mkdir(mode=0o750, exist_ok=True)
        index = cls(folder, ledger_id, algorithm)
        index._refresh()
        return index

    @property
    def held(self) -> list[Range]:
        """The story numbers that the segments hold: inclusive ranges, ascending, disjoint, adjacent ones joined."""
        self._refresh()
        return self._list_held_ranges()

    @property
    def stories(self) -> int:
        """The stories in segments that have passage hashes, including those that were changed or removed since."""
        return sum(file.segment.header.stories for file in self._segments if file.segment)

    @property
    def postings(self) -> int:
        """The postings in segments."""
        return sum(file.segment.postings for file in self._segments if file.segment)

    def measure_size(self) -> int:
        """The bytes of the segments."""
        size = 0
        for path in self.list_files():
            with suppress(FileNotFoundError):  # it was merged with others since
                size += path.stat().st_size
        return size

    def list_files(self) -> list[Path]:
        """The segments, none of which is ever changed."""
        self._refresh()
        return [file.path for file in self._segments]

    def insert(self, rows: Sequence[Row]) -> None:
        """Add stories, each with its distinct hashes, to the tail; those that the index holds already are left out."""
        with self._state:
            self._tail.add(rows, self._list_held_ranges())

    def look_up(self, probes: Sequence[PassageHashes], common: int, after: int = 0) -> list[Found]:
        """For each probe, distinct ascending hashes, the stories that share passages with it.

        A hash that more than `common` stories have finds none.  Segments without a number above `after` are left out.
        Raises PassagesDamaged.
        """
        return look_up(probes, common, *self._view(after), self._executor)

    def find_holders(self, hashes: PassageHashes, most: int) -> Numbers:
        """The stories that have any of some distinct ascending hashes; a hash that more than `most` have is left out.

        The numbers are ascending and distinct.  Raises PassagesDamaged.
        """
        return find_holders(hashes, most, *self._view())

    def find_postings(self, hashes: PassageHashes, most: int) -> tuple[Counts, Numbers, Counts]:
        """Which stories have each of some hashes: see `lookup.find_postings`.  Raises PassagesDamaged."""
        return find_postings(hashes, most, *self._view())

    def read_hashes(self, numbers: Sequence[int]) -> dict[int, PassageHashes]:
        """The hashes of each story number, ascending.

        A number that is no story's any more has them until a merge drops them.  Reads the segments that hold these
        numbers from end to end.  Raises PassagesDamaged.
        """
        self._refresh()
        with self._state:
            files = [file for file in self._segments if any(file.first <= number <= file.last for number in numbers)]
            sources: list[Source] = [*(file.get_segment() for file in files), *self._tail.runs]
        wanted, found = np.array(numbers, np.uint32), [NO_KEYS]
        for _, keys in read_stripes(sources):
            found.append(keys[np.isin(get_numbers(keys), wanted)])
        held = np.concatenate(found)
        return {number: get_hashes(held[get_numbers(held) == number]) for number in numbers}

    def flush(self, first: int, last: int, made_at: int, more: Keys = NO_KEYS) -> None:
        """Make the stories `first` to `last` of the tail a durable segment that holds these numbers.

        `more` are sorted keys of such stories that the tail lacks.  `made_at` is the number of the ledger's last
        change: the tail has it, and no story is removed before this returns.  Nothing is done if the segments
        hold all of these stories.  Raises ValueError if they hold some of them, Fatal if the disk fails or is full.
        """
        with self._writing, self._translate_write_errors():
            self._refresh()
            if any(start <= first and last <= stop for start, stop in self._list_held_ranges()):
                return
            if overlaps(self._list_held_ranges(), first, last):
                raise ValueError(f"the segments hold a part of the stories {first} to {last}")
            with self._state:
                runs = [*self._tail.runs_of(first, last), Run(more)]
            remove_leftovers(self._folder, self._segments)
            self._write(first, last, made_at, runs)
            self._refresh()

    def merge(self, is_live: IsLive, made_at: int) -> bool:
        """Merge some segments if a merge is due, without the postings of the numbers that are not live.

        `is_live` says for ascending numbers (n,), some of which never were a story's, which are of current stories.
        It knows of all changes of the ledger up to the number `made_at`.  Returns False if no merge is due.  Lookups
        and `insert` go on meanwhile.  Raises PassagesDamaged, and Fatal if the disk fails or is full.
        """
        with self._writing, self._translate_write_errors():
            self._refresh()
            segments = choose_segments_to_merge(self._segments)
            if not segments:
                return False
            remove_leftovers(self._folder, self._segments)
            first, last = segments[0].first, segments[-1].last
            sources = [file.get_segment() for file in segments]
            self._write(first, last, made_at, sources, LiveNumbers(first, last, is_live))
            self._refresh()
            remove_leftovers(self._folder, self._segments)
            return True

    @contextmanager
    def _translate_write_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Fatal(f"cannot write the passage index {self._folder}: {error.strerror or error}") from error

    def join(  # noqa: PLR0917 - what a sweep has at hand
        self, place_of: Numbers, language_of: LanguageOf, copy_keys: Numbers, common: int, scratch: Path, after: int = 0
    ) -> Iterator[JoinStep]:
        """All pairs of stories that share passages, and the common passages (see `join_passages`).

        `place_of` maps each number to the place by which the join knows its story, and numbers beyond its end to 0.
        `language_of` maps each place to a language, or to DEAD, and `copy_keys` to its copy key.  Raises
        PassagesDamaged, and OSError if `scratch` cannot be written.
        """
        sources, last = self._list_sources()
        if (missing := last + 1 - len(place_of)) > 0:
            place_of = np.concatenate([place_of, np.zeros(missing, np.uint32)])
        return join_passages(read_stripes(sources), place_of, language_of, copy_keys, common, scratch, after)

    def regroup_by_story(self, scratch: Path) -> Iterator[HashesByStory]:
        """The hashes of each story, a range of numbers at a time, ascending.  Raises PassagesDamaged and OSError."""
        sources, last = self._list_sources()
        return regroup_by_story(read_stripes(sources), last, scratch)

    def _list_sources(self) -> tuple[list[Source], int]:
        """All that has postings, and the last number."""
        self._refresh()
        with self._state:
            sources: list[Source] = [*(file.get_segment() for file in self._segments), *self._tail.runs]
            return sources, max([0, *(file.last for file in self._segments), self._tail.last])

    def check(self) -> Iterator[Damage]:
        """Read every segment, and yield those that are damaged."""
        return (read.damage for read in self.check_segments() if read.damage)

    def check_segments(self, after: int = 0) -> Iterator[Checked]:
        """Read the segments that begin after this number, in order, and yield each when it is read."""
        self._refresh()
        for file in self._segments:
            if file.first > after:
                yield Checked(file.last, find_damage(file))

    def list_made_after(self, change: int) -> list[str]:
        """The names of the segments that were made after a change of the ledger."""
        self._refresh()
        return [file.path.name for file in self._segments if file.segment and file.segment.header.made_at > change]

    def drop(self, name: str) -> Range:
        """Remove a segment by its file name.  Returns the first and last number that it held."""
        with self._writing:
            self._refresh()
            file = next(file for file in self._segments if file.path.name == name)
            file.path.unlink()
            sync_folder(self._folder)
            self._refresh()
            return file.first, file.last

    def clear(self, algorithm: str) -> None:
        """Remove everything; from now on the index has hashes of this algorithm."""
        with self._writing, self._state:
            self._segments, self._tail, self._algorithm = (), Tail(), algorithm
            remove_leftovers(self._folder, ())

    def close(self) -> None:
        """Wait for lookups to end.  What the tail holds is gone."""
        self._executor.shutdown()
        self._segments, self._tail = (), Tail()

    def _write(
        self, first: int, last: int, made_at: int, sources: Sequence[Source], live: LiveNumbers | None = None
    ) -> None:
        postings = sum(source.postings for source in sources)
        bits = choose_bits(postings, last - first + 1)
        header = Header(self._ledger_id, self._algorithm, made_at, first, last, 0, postings, *bits, 0)
        with SegmentWriter(make_next_path(self._folder, first, last), header) as writer:
            for prefixes, keys in read_stripes(sources):
                writer.append(prefixes, live.drop_gone(keys) if live else keys)
            writer.finish()

    def _view(self, after: int = 0) -> tuple[list[Segment], TailView]:
        """The segments with a number above `after`, and the tail, of one instant.  Raises PassagesDamaged."""
        self._refresh()
        with self._state:
            return [file.get_segment() for file in self._segments if file.last > after], self._tail.view

    def _list_held_ranges(self) -> list[Range]:
        return join_ranges((file.first, file.last) for file in self._segments)

    def _refresh(self) -> None:
        """Take up the segments that the folder has now."""
        with self._state:
            found = list_segments(self._folder)
            while [file.identity for file in found] != [file.identity for file in self._segments]:
                known = {file.identity: file for file in self._segments}
                try:
                    self._segments = tuple(
                        known.get(file.identity) or open_segment(file, self._ledger_id, self._algorithm)
                        for file in found
                    )
                    self._tail.remove(self._list_held_ranges())
                except FileNotFoundError:
                    pass
                found = list_segments(self._folder)  # again, because a folder may change while it is listed


def scan_segments(passages: PassageIndex, wanted: PassageHashes) -> Iterator[Keys]:
    """The postings of some distinct ascending hashes in the segments, without the lookups that this is to check.

    It reads the segments from end to end.  Raises PassagesDamaged.
    """
    for segment in _open_segments(passages):
        for _, keys in read_stripes([segment]):
            yield keys[list_places(*find_keys(keys, wanted))]


def _open_segments(passages: PassageIndex) -> list[Segment]:
    for _ in range(OPENING_ATTEMPTS - 1):
        try:
            return [Segment(path) for path in passages.list_files()]
        except FileNotFoundError:
            continue
    return [Segment(path) for path in passages.list_files()]
