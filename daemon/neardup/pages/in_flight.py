"""A record of the stories whose pages are being read, in a file beside the ledger that outlives the daemon.

After the daemon was killed, the next one finds there which stories may have killed it.  A shared memory map survives
the process that wrote it, though not a power cut, which is no story's fault; and a write to it takes a microsecond,
where a row in the ledger takes a commit.
"""

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.errors import Fatal

WORD_BYTES = 8
# A page takes milliseconds, and one that crashes the parser kills only a reader process.  What kills the daemon takes
# longer: memory runs out, or systemd's watchdog expires.  A story that had just begun is not the cause.
SUSPICIOUS_NS = 1_000_000_000


class InFlight:
    """A record of at most `most` stories at a time.

    `suspects` are the stories that had been in flight for SUSPICIOUS_NS when the previous daemon died.  The file no
    longer contains them, so that each death counts once: the caller must save them.
    """

    def __init__(self, ledger: Path, most: int) -> None:
        """Raises Fatal if the disk has no space for the file."""
        self._path = ledger.with_name(ledger.name + ".reading")
        size = (1 + 2 * most) * WORD_BYTES
        try:
            with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o640), "r+b") as file:
                self.suspects = _suspects(file.read())
                file.truncate(0)
                os.posix_fallocate(file.fileno(), 0, size)  # without it, a full disk would be a SIGBUS later
                self._map = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise Fatal(f"cannot write {self._path}: {error.strerror}") from error
        # the time of the last sign of life, then for each slot: the story's id + 1, or 0 if it is free, and its start
        self._words = memoryview(self._map).cast("Q")
        self._free = list(range(1, len(self._words), 2))

    @contextmanager
    def reading(self, story_id: int) -> Iterator[None]:
        """Keep a story on record while the block runs."""
        slot = self._free.pop()
        self._words[0] = self._words[slot + 1] = time.monotonic_ns()
        self._words[slot] = story_id + 1
        try:
            yield
        finally:
            self._words[slot] = 0
            self._free.append(slot)

    def beat(self) -> None:
        """Record that the daemon is alive; call it regularly, since no story may begin for long."""
        self._words[0] = time.monotonic_ns()

    def close(self) -> None:
        """Remove the record: no story is in flight."""
        self._words.release()
        self._map.close()
        self._path.unlink(missing_ok=True)


def _suspects(record: bytes) -> list[int]:
    words = memoryview(record[: len(record) // WORD_BYTES * WORD_BYTES]).cast("Q")
    slots = zip(words[1::2], words[2::2], strict=False)
    return [story - 1 for story, began in slots if story and began + SUSPICIOUS_NS <= words[0]]
