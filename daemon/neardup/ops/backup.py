"""`neardup backup`: a copy of the ledger, and in folders beside it of its passage index and its submitted pages.

SQLite's backup API copies the pages of the ledger under one read transaction: writers need not wait and do not make the
copy start over; what they write meanwhile stays in the write-ahead log.  The copy is one file without a log.  It is
closed, read again and checked in full, indexes included, before it gets its final name.

Segments never change, so those that the previous copy has are kept.  New ones are added before the ledger's copy gets
its name, and those that are gone are removed after that: a backup that is killed leaves a ledger with all its segments.
"""

import fcntl
import os
import shutil
import sqlite3
import stat
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from neardup.errors import Fatal, Misuse, NeardupError, PassagesDamaged, Transient
from neardup.index.passages.folder import list_segments
from neardup.index.passages.segment import BLOCK, HeaderDamaged, Segment
from neardup.ledger import connect, files, now_ms, outbox, read_any_schema, runs, schema, snapshot
from neardup.pipeline import submitted_pages
from neardup.sqlite import FAILURES, explain_failure, sync_folder
from neardup.telemetry.log import log

COPY_BYTES = 1 << 20  # at a time
PAGES_A_STEP = 4096  # 16 MB
BESIDE = ("", "-journal", "-wal", "-shm")  # files that SQLite may leave behind when a copy is killed


def back_up(ledger: Path, to: Path) -> tuple[int, int]:
    """Copy the ledger to a path, its segments and its submitted pages to folders beside it.

    Returns the bytes of the copies of ledger and segments.  A ledger of an earlier schema is copied as it is, and not
    upgraded: so the copy is not recorded in it.

    Raises Misuse for a path that cannot be that of a copy, Transient where another copy to it is in progress, Fatal
    where the copy cannot be written or turns out damaged.
    """
    with _copy_segments(files.name_passages_folder(ledger), files.name_passages_folder(to)) as segments:
        size = _copy_ledger(ledger, to, (segments, SubmittedCopies(ledger, to)))
        return size, segments.measure_size()


class SegmentCopies:
    """The segments of a folder, open, and their copies in another folder.

    Segments that are open can be copied although a merge removes them meanwhile.
    """

    def __init__(self, source: Path, target: Path) -> None:
        self._source = source
        self._target = target
        self._descriptors: dict[str, int] = {}
        self._copied: set[str] = set()

    def begin(self) -> None:
        """Open the segments that the folder has now, beside those opened before."""
        for segment in list_segments(self._source) if self._source.is_dir() else ():
            try:
                if segment.path.name not in self._descriptors:
                    self._descriptors[segment.path.name] = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:  # merged meanwhile; a second call finds the segment that replaces it
                continue

    def write(self) -> None:
        """Copy the segments that the folder of copies lacks, and verify every checksum of every copy."""
        if not self._descriptors:
            return
        files.make_folder(self._target)
        for name, descriptor in self._descriptors.items():
            path = self._target / name
            if not _is_copy(path, descriptor) or _is_damaged(path):
                part = path.with_name(f".{name}.part")
                _copy(descriptor, part)
                if _is_damaged(part):
                    log.warning("a damaged segment is left out of the copy; `neardup doctor` looks at it", segment=name)
                    continue
                part.replace(path)
            self._copied.add(name)
        sync_folder(self._target)

    def finish(self) -> None:
        """Remove what is no copy of these segments."""
        _remove_others(self._target, self._copied)

    def measure_size(self) -> int:
        """The bytes of the copies."""
        return sum((self._target / name).stat().st_size for name in self._copied)

    def close(self) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)


class SubmittedCopies:
    """The copies of a ledger's submitted pages, whose files never change.

    A page that is removed while the copy is made belongs to a story that has another page, or is forgotten.
    """

    def __init__(self, ledger: Path, to: Path) -> None:
        self._ledger = ledger
        self._target = files.name_submitted_folder(to)
        self._pages: list[Path] = []

    def begin(self) -> None:
        """Note the pages, all of which were written before the stories of the ledger's snapshot."""
        self._pages = submitted_pages.list_files(self._ledger)

    def write(self) -> None:
        """Copy the pages that the folder of copies lacks."""
        if not self._pages:
            return
        files.make_folder(self._target)
        for page in self._pages:
            copy = self._target / page.name
            with suppress(FileNotFoundError):
                if not copy.exists():
                    part = copy.with_name(f".{page.name}.part")
                    with page.open("rb") as source:
                        _copy(source.fileno(), part)
                    part.replace(copy)
        sync_folder(self._target)

    def finish(self) -> None:
        """Remove what is no copy of these pages."""
        _remove_others(self._target, {page.name for page in self._pages})


@contextmanager
def _copy_segments(source: Path, target: Path) -> Iterator[SegmentCopies]:
    """The segments as they are now; `begin` adds those that replace them until the snapshot of the ledger begins."""
    segments = SegmentCopies(source, target)
    try:
        segments.begin()
        yield segments
    finally:
        segments.close()


def _is_copy(path: Path, descriptor: int) -> bool:
    """Whether a file has the size and the header of an open segment; a header has the checksum of the checksums."""
    if not path.exists() or path.stat().st_size != os.fstat(descriptor).st_size:
        return False
    with path.open("rb") as file:
        return file.read(BLOCK) == os.pread(descriptor, BLOCK, 0)


def _copy(descriptor: int, to: Path) -> None:
    """Copy an open file, durably."""
    with open(descriptor, "rb", closefd=False) as source, to.open("wb") as target:
        source.seek(0)
        os.fchmod(target.fileno(), os.fstat(descriptor).st_mode & files.SHARED_MODE)
        shutil.copyfileobj(source, target, COPY_BYTES)
        target.flush()
        os.fsync(target.fileno())


def _remove_others(folder: Path, names: Collection[str]) -> None:
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in names:
            path.unlink()


def _is_damaged(path: Path) -> bool:
    try:
        Segment(path).verify()
    except (HeaderDamaged, PassagesDamaged):
        return True
    return False


# The ledger.


Companion = SegmentCopies | SubmittedCopies  # what is copied together with the ledger


def _copy_ledger(ledger: Path, to: Path, companions: Sequence[Companion]) -> int:
    """Copy the ledger completely or not at all, replacing a file there.  Returns the copy's size in bytes."""
    _refuse_path(to, ledger)
    with closing(read_any_schema(ledger)) as source:
        is_former = schema.read_version(source) < schema.VERSION
        try:
            with _open_part(to) as (part, handle):
                os.fchmod(handle, stat.S_IMODE(ledger.stat().st_mode) & files.SHARED_MODE)
                _copy_snapshot(source, part, companions)
                _refuse_damage(part)
                os.fsync(handle)
                for companion in companions:
                    companion.write()
                part.replace(to)
                sync_folder(to.parent)
                for companion in companions:
                    companion.finish()
        except OSError as error:
            raise Fatal(f"cannot write {to}: {error.strerror}") from error
        except FAILURES as error:
            raise explain_failure(error, f"cannot copy the ledger to {to}") from error
    if not is_former:
        with suppress(NeardupError), closing(connect(ledger)) as db:  # the copy is valid even if it cannot be recorded
            runs.put(db, runs.BACKED_UP, str(now_ms()))
    return to.stat().st_size


def _refuse_path(to: Path, ledger: Path) -> None:
    if to.exists() and not to.is_file():
        raise Misuse(f"{to} is no regular file")
    if to.resolve() == ledger.resolve():
        raise Misuse(f"{to} is the ledger itself")
    if not to.parent.is_dir():
        raise Misuse(f"there is no folder {to.parent}")


@contextmanager
def _open_part(to: Path) -> Iterator[tuple[Path, int]]:
    """An empty, locked file beside a path, removed at the end unless it was renamed.  Raises Transient."""
    part = to.with_name(f".{to.name}.part")
    handle = os.open(part, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        for suffix in BESIDE[1:]:
            part.with_name(part.name + suffix).unlink(missing_ok=True)
        try:
            yield part, handle
        finally:
            for suffix in BESIDE:
                part.with_name(part.name + suffix).unlink(missing_ok=True)
    except BlockingIOError as error:
        raise Transient(f"another copy is being made for {to}", "locked") from error
    finally:
        os.close(handle)


def _copy_snapshot(source: sqlite3.Connection, part: Path, companions: Sequence[Companion]) -> None:
    """Copy the pages of one snapshot.  Raises Fatal."""
    with closing(sqlite3.connect(part, isolation_level=None)) as copy, snapshot(source):
        last = outbox.read_last_seq(source)  # the first read starts the snapshot
        for companion in companions:
            companion.begin()
        source.backup(copy, pages=PAGES_A_STEP, progress=lambda *_: None)  # signals interrupt it between steps
        copy.execute("PRAGMA journal_mode = DELETE")  # no log beside it
        if outbox.read_last_seq(copy) != last:
            raise _explain_damage("its last change is missing")


def _refuse_damage(part: Path) -> None:
    """Check the copy as it is in the file, not in the cache of the connection that wrote it.  Raises Fatal."""
    if faults := files.find_faults(part):
        raise _explain_damage("; ".join(faults))


def _explain_damage(why: str) -> Fatal:
    advice = "the ledger may be, too: `neardup doctor` looks at it; no copy was replaced"
    return Fatal(f"the copy is damaged: {why}; {advice}")
