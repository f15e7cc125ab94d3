"""A record of the stories whose pages are being computed, in a file beside the ledger that outlives the daemon.

After the daemon was killed, the next one finds there which stories may have killed it.  A shared memory map survives
the process that wrote it, though not a power cut, which is no story's fault; and a write to it takes a microsecond,
where a row in the ledger takes a commit.
"""

import mmap
import os
from collections.abc import Collection
from pathlib import Path

from neardup.errors import Fatal

WORD_BYTES = 8


class InFlight:
    """A record of at most `most` stories at a time.

    `interrupted` are the stories that were on record when the previous daemon died.  The file no longer contains them,
    so that each death counts once: the caller must save them.
    """

    def __init__(self, ledger: Path, most: int) -> None:
        """Raises Fatal if the disk has no space for the file."""
        self._path = ledger.with_name(ledger.name + ".reading")
        size = most * WORD_BYTES
        try:
            with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o640), "r+b") as file:
                self.interrupted = _on_record(file.read())
                file.truncate(0)
                os.posix_fallocate(file.fileno(), 0, size)  # without it, a full disk would be a SIGBUS later
                self._map = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise Fatal(f"cannot write {self._path}: {error.strerror}") from error
        self._words = memoryview(self._map).cast("Q")  # the id + 1 of a story, or 0

    def replace(self, stories: Collection[int]) -> None:
        """Keep these stories on record, and no others."""
        for slot, word in enumerate([story_id + 1 for story_id in stories] + [0] * (len(self._words) - len(stories))):
            self._words[slot] = word

    def remove(self, stories: Collection[int]) -> None:
        """Remove those of these stories that are on record."""
        for slot, word in enumerate(self._words):
            if word and word - 1 in stories:
                self._words[slot] = 0

    def close(self) -> None:
        """Remove the record: no story is in flight."""
        self._words.release()
        self._map.close()
        self._path.unlink(missing_ok=True)


def _on_record(record: bytes) -> list[int]:
    words = memoryview(record[: len(record) // WORD_BYTES * WORD_BYTES]).cast("Q")
    return [word - 1 for word in words if word]
