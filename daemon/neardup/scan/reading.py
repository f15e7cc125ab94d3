"""What the processes of a scan do with documents: read, extract, fingerprint, and keep what pairs are compared by.

A document that a process cannot digest, or dies of, is left to a pool of reader processes, which have a watchdog.
"""

import os
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from neardup.core.page import PageFingerprinted, Unreadable, fingerprint_story, text_of
from neardup.core.text.extraction import Extraction
from neardup.core.text.scripts import ENGLISH, UnknownScript, detect_language
from neardup.errors import NeardupError
from neardup.pages.plain_content import PlainContent
from neardup.pages.results import Failure, failure_of
from neardup.pages.store import Pages
from neardup.records import Language
from neardup.scan.workers import lift_time_limit, limit_time
from neardup.source.documents import Document

WHOLE_PAGE = Extraction()


class KeptText(NamedTuple):
    """Where a text stands, in UTF-8: in which scratch file, from where on, and how many bytes it has."""

    file: int
    start: int
    size: int


class Scratch:
    """A file without a name, on disk, to which one process appends and from which all read."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="neardup-scan-", buffering=0)  # noqa: SIM115 - `close` closes it
        self._end = 0

    def close(self) -> None:
        """Free its room on disk, once no process has it any more."""
        self._file.close()

    def keep(self, number: int, text: bytes) -> KeptText:
        """Append a text to this file, which has this number.  Raises OSError where the disk is full."""
        kept, rest = KeptText(number, self._end, len(text)), memoryview(text)
        self._end += len(text)
        while rest:
            rest = rest[os.pwrite(self._file.fileno(), rest, self._end - len(rest)) :]
        return kept

    def load(self, kept: KeptText) -> bytes:
        """A text that was kept in this file."""
        return os.pread(self._file.fileno(), kept.size, kept.start)


class ReadDocument(NamedTuple):
    """What was read of a document: its language, ENGLISH for one without letters, and the result of its page.

    `wrong_script` says why its language is not known.  `text` is None where there is nothing to compare.
    """

    language: Language
    result: PageFingerprinted | Failure
    text: KeptText | None = None
    wrong_script: str | None = None


class Reader:
    """Reads documents for one process, and keeps their texts in one of the scratch files."""

    def __init__(self, content: PlainContent, scratch: Scratch, number: int) -> None:
        self._pages = Pages(content)
        self._scratch = scratch
        self._number = number

    def read_all(self, documents: Sequence[Document]) -> list[ReadDocument | None]:
        """Read documents; None for one that the libraries cannot digest."""
        read = list(map(self._read_or_leave, documents))
        lift_time_limit()
        return read

    def _read_or_leave(self, document: Document) -> ReadDocument | None:
        limit_time()
        try:
            return self._read(document)
        except (MemoryError, OSError):
            raise
        except Exception:  # noqa: BLE001 - the pool of reader processes names the error
            return None

    def _read(self, document: Document) -> ReadDocument:
        language = document.language or ENGLISH
        try:
            page = self._pages.page_of(self._pages.begin(document.path))
        except NeardupError as error:
            return ReadDocument(language, failure_of(error))
        assert page is not None  # without an ETag none is unchanged
        story = text_of(page, WHOLE_PAGE)
        if isinstance(story, Unreadable):
            return ReadDocument(language, story)
        return self.keep(document, fingerprint_story(page, story, named=False), story.utf8)

    def keep(self, document: Document, result: PageFingerprinted | Failure, text: bytes | None) -> ReadDocument:
        """Detect the language of a text that was read, in UTF-8, and keep it to be compared."""
        language = document.language or ENGLISH
        if text is not None and document.language is None:
            try:
                language = detect_language(text.decode())
            except UnknownScript as error:
                return ReadDocument(language, result, wrong_script=str(error))
        if text is None or not isinstance(result, PageFingerprinted):
            return ReadDocument(language, result)
        return ReadDocument(language, result, self._scratch.keep(self._number, text))
