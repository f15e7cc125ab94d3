"""The passage index: which stories have a passage hash, in segments on disk and a tail in memory.

A segment holds a range of story numbers and is never changed.  `flush` makes a segment of the tail and is durable when
it returns; a crash before that loses the tail, which the ledger's outbox has.  A small segment is merged with others
later.  One process writes, while any number read; each lookup sees the segments that the folder has then.

The hashes of all probes of a batch are looked up in ascending order, so that a batch reads a block once; and by several
threads, so that a disk is asked for several blocks at once.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import numpy as np

from neardup.core.candidates.banding import Numbers
from neardup.core.candidates.passage_groups import LanguageOf
from neardup.core.fingerprint.word_hashes import MIN_SHARED
from neardup.core.sets import find_edges
from neardup.errors import Fatal
from neardup.index.passages.folder import (
    Checked,
    Damage,
    IsLive,
    Marks,
    SegmentFile,
    choose_segments_to_merge,
    find_damage,
    list_segments,
    make_next_path,
    mark_live,
    open_segment,
    remove_leftovers,
)
from neardup.index.passages.join import HashesByStory, JoinStep, join_passages, regroup_by_story
from neardup.index.passages.postings import (
    HASH_SHIFT,
    NO_KEYS,
    Counts,
    Keys,
    PassageHashes,
    Range,
    Row,
    Run,
    Source,
    Tail,
    TailView,
    get_hashes,
    get_numbers,
    join_ranges,
    may_hold,
    overlaps,
    read_stripes,
    select_keys,
)
from neardup.index.passages.segment import Header, Segment, choose_bits, write_segment
from neardup.sqlite import sync_folder

THREADS = 8
HASHES_A_THREAD = 128  # at most, while there are threads; the lookups of few cost less than a thread
MOST_CACHED_BYTES = 96 << 20  # of segments that the system keeps in memory once they were read


class Found(NamedTuple):
    """The answer to one probe.

    `numbers` (n,), ascending, are the stories that share at least MIN_SHARED hashes with it, apart from those that
    more stories have than were allowed, `shared` (n,) how many.  `holders` has how many stories have each hash.
    Stories that were changed or removed are among them until a merge drops them.
    """

    numbers: Numbers
    shared: Counts
    holders: Counts


class _Postings(NamedTuple):
    """For some hashes: how many stories have each, and (position of the hash, number) of those of uncommon hashes."""

    holders: Counts
    positions: Counts
    numbers: Numbers


class _Occurrences(NamedTuple):
    """For the hashes that a source has: their positions among those looked up, where their postings begin, how many."""

    positions: Counts
    places: Counts
    counts: Counts


class PassageIndex:
    """The passage index of one ledger and one version of the passage hashes.  Thread-safe; its methods block."""

    def __init__(self, folder: Path, ledger_id: str, algorithm: str) -> None:
        """Open the index in a folder, which is created if it does not exist.

        Raises Fatal if a segment is of another ledger, algorithm or format.  A damaged segment raises nothing here.
        """
        self._folder, self._ledger_id, self._algorithm = folder, ledger_id, algorithm
        self._segments: tuple[SegmentFile, ...] = ()
        self._tail = Tail()
        self._state = Lock()  # of the two above
        self._writing = Lock()
        folder.mkdir(mode=0o750, exist_ok=True)
        self._refresh()
        self._executor = ThreadPoolExecutor(THREADS, "passages")

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
        if not probes:
            return []
        segments, tail = self._view(after)
        hashes = np.concatenate(probes)
        keys = hashes.astype(np.uint64) << HASH_SHIFT | np.arange(len(hashes), dtype=np.uint64)
        order = np.sort(keys).astype(np.uint32)  # the places of the hashes, in half the time of argsort
        owners = np.repeat(np.arange(len(probes)), [len(probe) for probe in probes])
        threads = min(THREADS, -(-len(order) // HASHES_A_THREAD)) if _is_large(segments) else 1
        parts = [part for part in np.array_split(order, max(threads, 1)) if len(part)]
        found = list(
            (self._executor.map if len(parts) > 1 else map)(
                lambda part: _find_postings(hashes[part], common, segments, tail), parts
            )
        )
        holders, keys_found = np.empty(len(hashes), np.int64), [NO_KEYS]
        for part, postings in zip(parts, found, strict=True):
            holders[part] = postings.holders
            keys_found.append(owners[part][postings.positions].astype(np.uint64) << HASH_SHIFT | postings.numbers)
        return _make_answers(probes, holders, np.sort(np.concatenate(keys_found)))

    def find_postings(self, hashes: PassageHashes, most: int) -> tuple[Counts, Numbers, Counts]:
        """Which stories have each of some hashes, distinct and ascending, and how many have each.

        Positions (n,) of hashes, and numbers (n,), without those of a hash that more than `most` have; and the counts.
        Raises PassagesDamaged.
        """
        found = _find_postings(hashes, most, *self._view())
        return found.positions, found.numbers, found.holders

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

    def scan(self, wanted: PassageHashes) -> Iterator[Keys]:
        """The postings of some distinct ascending hashes, not by `look_up`, whose answers this checks.

        It reads each segment from end to end, in no order across them.  Raises PassagesDamaged.
        """
        for source in self._list_sources()[0]:
            for _, keys in read_stripes([source]):
                yield select_keys(keys, wanted)

    def flush(self, first: int, last: int, made_at: int, more: Keys = NO_KEYS) -> None:
        """Make the stories `first` to `last` of the tail a durable segment that holds these numbers.

        `more` are sorted keys of such stories that the tail lacks.  `made_at` is the number of the ledger's last
        change; the caller sees to it that the tail has it, and that no story is removed meanwhile.  Nothing is done if
        the segments hold all of these stories.  Raises ValueError if they hold some of them, Fatal if the disk fails
        or is full.
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

        `is_live` says which of ascending numbers (n,) are of current stories; some of these never were a story's.
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
            self._write(first, last, made_at, sources, mark_live(first, last, is_live))
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

    def _write(self, first: int, last: int, made_at: int, sources: Sequence[Source], live: Marks | None = None) -> None:
        """Write a segment; `live` marks which of the numbers from `first` on are kept."""
        postings = sum(source.postings for source in sources)
        bits = choose_bits(postings, last - first + 1)
        # what is 0, and how many postings are left of these, is known when they are written
        header = Header(self._ledger_id, self._algorithm, made_at, first, last, 0, postings, *bits, 0)
        stripes = (
            (prefixes, keys if live is None else keys[live[get_numbers(keys) - np.uint32(first)]])
            for prefixes, keys in read_stripes(sources)
        )
        write_segment(make_next_path(self._folder, first, last), header, stripes)

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


def _is_large(segments: Sequence[Segment]) -> bool:
    """Whether the segments do not all stay in memory, so that lookups wait for the disk."""
    return sum(segment.header.file_bytes for segment in segments) > MOST_CACHED_BYTES


def _find_postings(hashes: PassageHashes, common: int, segments: Sequence[Segment], tail: TailView) -> _Postings:
    sources: list[Segment | Run] = [*segments, *tail.runs]
    everywhere, maybe = np.arange(len(hashes)), np.flatnonzero(may_hold(tail.filter, hashes))
    found = [_select_held(everywhere, *segment.find(hashes)) for segment in segments]
    found += [_select_held(maybe, *run.find(hashes[maybe])) for run in tail.runs]
    holders = np.zeros(len(hashes), np.int64)
    for occurrences in found:
        holders[occurrences.positions] += occurrences.counts
    positions, numbers = [np.empty(0, np.int64)], [np.empty(0, np.uint32)]
    for source, occurrences in zip(sources, found, strict=True):
        wanted = np.where(holders[occurrences.positions] <= common, occurrences.counts, 0)
        positions.append(np.repeat(occurrences.positions, wanted))
        numbers.append(source.numbers(occurrences.places, wanted))
    return _Postings(holders, np.concatenate(positions), np.concatenate(numbers))


def _select_held(positions: Counts, places: Counts, counts: Counts) -> _Occurrences:
    """Those of the looked up hashes, at `positions`, that a source has."""
    held = np.flatnonzero(counts)
    return _Occurrences(positions[held], places[held], counts[held])


def _make_answers(probes: Sequence[PassageHashes], holders: Counts, keys: Keys) -> list[Found]:
    """`holders` are those of the hashes of all probes, `keys` the (probe, number) of each posting found, sorted."""
    groups = find_edges(keys)
    shared = np.diff(groups)
    several = shared >= MIN_SHARED
    kept, shared = keys[groups[:-1][several]], shared[several]
    numbers, edges = get_numbers(kept), np.searchsorted(kept, np.arange(len(probes) + 1, dtype=np.uint64) << HASH_SHIFT)
    ends = np.cumsum([0, *map(len, probes)])
    return [
        Found(numbers[start:stop], shared[start:stop], holders[first:last])
        for (start, stop), (first, last) in zip(pairwise(edges), pairwise(ends), strict=True)
    ]
