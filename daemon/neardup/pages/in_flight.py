"""Which stories are being read, on record beside the ledger: after the daemon died, it tells who was there.

A shared memory map outlives the process that wrote to it, if not a power cut, which is no story's doing; and
writing to it takes a microsecond, where a row in the ledger takes a commit.
"""

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.errors import Fatal

WORD_BYTES = 8
# A page takes milliseconds, and one that is the end of a parser is the end of a reader process.  What takes the
# daemon along is memory that runs out, or a watchdog that nobody feeds, and they take their time: whoever came just
# before a kill had no part in it.
SUSPICIOUS_NS = 1_000_000_000


class InFlight:
    """At most `most` stories at a time.  `suspects` are those that were there for long when the daemon died.

    Whoever reads `suspects` must put it on record: the file holds it no longer, so that nobody is counted twice for one
    death.
    """

    def __init__(self, ledger: Path, most: int) -> None:
        """Raises Fatal where there is no room for the file."""
        self._path = ledger.with_name(ledger.name + ".reading")
        size = (1 + 2 * most) * WORD_BYTES
        try:
            with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o640), "r+b") as file:
                self.suspects = _left(file.read())
                file.truncate(0)
                os.posix_fallocate(file.fileno(), 0, size)  # or a full disk would be a SIGBUS later
                self._map = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise Fatal(f"cannot write {self._path}: {error.strerror}") from error
        # when somebody last came, then of each place who holds it (the id and one: 0 is nobody), and since when
        self._words = memoryview(self._map).cast("Q")
        self._free = list(range(1, len(self._words), 2))

    @contextmanager
    def reading(self, story_id: int) -> Iterator[None]:
        """On record while it lasts."""
        at = self._free.pop()
        self._words[0] = self._words[at + 1] = time.monotonic_ns()
        self._words[at] = story_id + 1
        try:
            yield
        finally:
            self._words[at] = 0
            self._free.append(at)

    def beat(self) -> None:
        """The daemon lives; to be told now and then, as nobody may come for long."""
        self._words[0] = time.monotonic_ns()

    def close(self) -> None:
        """Nobody is there any more."""
        self._words.release()
        self._map.close()
        self._path.unlink(missing_ok=True)


def _left(held: bytes) -> list[int]:
    words = memoryview(held[: len(held) // WORD_BYTES * WORD_BYTES]).cast("Q")
    places = zip(words[1::2], words[2::2], strict=False)
    return [who - 1 for who, since in places if who and since + SUSPICIOUS_NS <= words[0]]
