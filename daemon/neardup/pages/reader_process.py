"""A process that fetches, parses and fingerprints pages, started by neardup.pages.reader_pool.

Measured on two cores that ran nginx and Redis too, pages of 20 KB, whole backfills, steady state: two such
processes 2,480 to 2,560 stories/s and 690 us of CPU a story in all, threads of the daemon's own 1,500
and 880, for they wait on each other's interpreter lock; fetching by coroutines cost more than either.
"""

import os
import pickle
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, Self

from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint_text, text_hash
from neardup.core.text.html import Extraction, Unreadable, page_text
from neardup.core.text.normalize import tokens
from neardup.core.verify.scores import Shingled, shingled
from neardup.errors import Gone, NeardupError
from neardup.garbage_collection import collect_seldom
from neardup.pages.curl_multi import Transfers
from neardup.pages.local import File
from neardup.pages.s3 import Get
from neardup.pages.store import Document, Pages
from neardup.pages.watchdog import Record
from neardup.records import Fingerprint, Skip

MIN_WORDS = 10  # shorter pages are headings and notices; all of them alike, none of them copied

LENGTH = struct.Struct("!i")  # in front of each message, as multiprocessing has it
TOGETHER = 8  # answers in a message, while more are about to come: to send each costs more than to count a batch's

Request = tuple[int, str, str, str | None]  # a number to answer to, one of WORKS, a page's path, the ETag it had


@dataclass(frozen=True, slots=True)
class Asked:
    """A request under way."""

    number: int
    work: str
    path: str
    etag: str | None
    began: float
    first: bool = True


@dataclass(frozen=True, slots=True)
class Read:
    """A page as it was read: its fingerprint, its bytes, and the seconds that each stage took."""

    fingerprint: Fingerprint
    etag: str | None
    size: int
    fetch: float
    extract: float
    fingerprinting: float

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickled in half the time that looking its fields up would take."""
        return type(self), (self.fingerprint, self.etag, self.size, self.fetch, self.extract, self.fingerprinting)


def read_page(document: Document, extraction: Extraction, fetch: float = 0.0) -> Read:
    """A page -> the fingerprint of its story.  Raises Unreadable."""
    began = time.perf_counter()
    text = page_text(document.body, document.content_type, extraction)
    extracted = time.perf_counter()
    made = fingerprint_text(text)
    if made is None or made.words < MIN_WORDS:
        raise Unreadable(Skip.EMPTY if made is None else Skip.TOO_SHORT)
    seconds = fetch, extracted - began, time.perf_counter() - extracted
    return Read(made, document.etag, len(document.body), *seconds)


def page_shingled(document: Document, extraction: Extraction, _: float = 0.0) -> tuple[bytes, Shingled]:
    """A page -> the hash of its story's text, and the text to be compared.  Raises Unreadable."""
    words = tokens(page_text(document.body, document.content_type, extraction))
    if not words:
        raise Unreadable(Skip.EMPTY)
    return text_hash(words), shingled(words)


def page_story(document: Document, extraction: Extraction, _: float = 0.0) -> tuple[str, list[bytes]]:
    """A page -> its story's text, and the words of that.  Raises Unreadable."""
    text = page_text(document.body, document.content_type, extraction)
    return text, story_words(text)


def story_words(text: str) -> list[bytes]:
    """A story's text -> its words, normalised.  Raises Unreadable where they are too few for a fingerprint."""
    words = tokens(text)
    if len(words) < MIN_WORDS:
        raise Unreadable(Skip.TOO_SHORT if words else Skip.EMPTY)
    return words


WORKS: dict[str, Callable[[Document, Extraction, float], Any]] = {
    work.__name__: work for work in (read_page, page_shingled, page_story)
}


class _Reading:
    """Answers the requests that come over a link: many pages are fetched at a time, and one is computed."""

    def __init__(self, link: Connection, record: Record, content: Content, extraction: Extraction) -> None:
        self._link = link
        self._record = record
        self._pages = Pages(content)
        self._extraction = extraction
        self._transfers = Transfers(link.fileno())
        self._asked: dict[Get | File, Asked] = {}
        self._answers: list[tuple[int, Any]] = []

    def serve(self) -> None:
        """Answer requests until there are no more.  Raises EOFError."""
        while True:
            if self._transfers.go_on(wait=not self._answers):
                for number, work, path, etag in self._link.recv():
                    self._begin(Asked(number, work, path, etag, time.perf_counter()))
            self._record.hold(self._transfers.held)
            if get := self._transfers.next():
                self._take(get)
            if len(self._answers) >= TOGETHER or not get:
                self._send_answers()

    def send(self, message: object) -> None:
        """Whoever the message is for may be gone."""
        with suppress(OSError):
            self._link.send_bytes(pickle.dumps(message))

    def _send_answers(self) -> None:
        if self._answers:
            self.send((self._answers, time.process_time()))
            self._answers.clear()

    def _begin(self, asked: Asked) -> None:
        try:
            get = self._pages.begin(asked.path, asked.etag)
        except Exception as error:  # noqa: BLE001 - raised again where the page was asked for
            self._fail(asked, error)
            return
        self._asked[get] = asked
        self._transfers.begin(get)

    def _take(self, get: Get | File) -> None:
        asked = self._asked.pop(get)
        try:
            self._answers.append((asked.number, self._computed(asked, get)))
        except Exception as error:  # noqa: BLE001 - raised again where the page was asked for
            if isinstance(error, Gone) and asked.first and asked.work != read_page.__name__:
                self._begin(replace(asked, first=False))  # it was there: that it is gone must be said twice
            else:
                self._fail(asked, error)

    def _fail(self, asked: Asked, error: Exception) -> None:
        if not isinstance(error, NeardupError | Unreadable):  # some others cannot be sent
            traceback.print_exception(error)
            error = RuntimeError(f"{type(error).__name__}: {error}")
        self._answers.append((asked.number, error))

    def _computed(self, asked: Asked, get: Get | File) -> Any:
        """What a page gives; on record, so that it is known which takes too much."""
        self._record.begin(asked.number)
        try:
            document = self._pages.taken(get)
            fetched = time.perf_counter() - asked.began
            return None if document is None else WORKS[asked.work](document, self._extraction, fetched)
        except MemoryError:
            os._exit(1)  # with the page on record; what is left of the process cannot be relied on
        finally:
            self._record.end()


def main(links: Sequence[tuple[int, int]]) -> None:
    """Serve whoever started this process over each of these links, by a process each, and end with it.

    A link is the descriptors of a socket and of a `Record`.  The first thing told is this process's id, the
    version of the fingerprints made here, and whether by compiled code.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to all of a service: who started it decides when it ends
        signal.signal(number, signal.SIG_IGN)
    try:
        compiled = fingerprint_version.warm_up()
    except RuntimeError as error:
        sys.exit(f"neardup: {error}")
    collect_seldom()
    (mine, record), forked = _fork(links)
    with suppress(EOFError, OSError), Connection(mine) as link:
        reading = _Reading(link, Record(record), *link.recv())
        reading.send((os.getpid(), fingerprint_version.version(), compiled))
        reading.serve()
    for child in forked:
        os.waitpid(child, 0)
    os._exit(0)


def _fork(links: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], list[int]]:
    """Become a process for each link; which is this one's, and the ids of those that it forked."""
    mine, forked = links[0], list[int]()
    for other in links[1:]:
        if child := os.fork():
            forked.append(child)
        else:
            mine, forked = other, []
            break
    for other in links:
        if other != mine:  # or the end of its process would go unnoticed
            os.close(other[0])
    return mine, forked
