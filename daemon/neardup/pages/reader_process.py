"""A process that fetches, parses and fingerprints pages, started by neardup.pages.reader_pool.

Measured on two cores that ran nginx and Redis too, pages of 20 KB, whole backfills, steady state: two such
processes 2,480 to 2,560 stories/s and 690 us of CPU a story in all, threads of the daemon's own 1,500
and 880, for they wait on each other's interpreter lock; fetching by coroutines cost more than either.
"""

import os
import pickle
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.page import Page, fingerprint_story, shingle_story, split_story, text_of
from neardup.core.text.html import Extraction
from neardup.errors import Gone, NeardupError
from neardup.garbage_collection import collect_seldom
from neardup.pages.curl_multi import Transfers
from neardup.pages.local import File
from neardup.pages.results import NotModified, crash_of
from neardup.pages.s3 import Get
from neardup.pages.store import Pages
from neardup.pages.watchdog import Record

TOGETHER = 8  # answers in a message, while more are about to come: to send each costs more than to count a batch's

Request = tuple[str, str, str | None]  # one of WORKS, a page's path, the ETag it had
Seconds = tuple[float, float, float]  # that fetching, extracting and fingerprinting a page took
Answer = tuple[object, Seconds | None]
Greeting = tuple[str, bool]  # the version of the fingerprints made here, and whether by compiled code


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request under way; one of `first` attempt is made again where its page is gone."""

    number: int
    work: str
    path: str
    etag: str | None
    began: float
    first: bool = True


FINGERPRINT, SHINGLE, SPLIT = "fingerprint", "shingle", "split"
WORKS: dict[str, Callable[[Page, str], object]] = {
    FINGERPRINT: fingerprint_story,
    SHINGLE: lambda _, text: shingle_story(text),
    SPLIT: lambda _, text: split_story(text),
}


class _ReaderProcess:
    """Answers the requests of its owner: many pages are fetched at a time, and one is computed."""

    def __init__(self, owner: Connection, record: Record, content: Content, extraction: Extraction) -> None:
        self._owner = owner
        self._record = record
        self._pages = Pages(content)
        self._extraction = extraction
        self._transfers = Transfers(owner.fileno())
        self._requests: dict[Get | File, PageRequest] = {}
        self._answers: list[tuple[int, Answer | Exception]] = []

    def serve(self) -> None:
        """Answer requests until there are no more.  Raises EOFError."""
        while True:
            if self._transfers.advance(wait=not self._answers):
                for number, (work, path, etag) in self._owner.recv():
                    self._begin(PageRequest(number, work, path, etag, time.perf_counter()))
            self._record.hold(self._transfers.held)
            if get := self._transfers.pop_finished():
                self._take(get)
            if len(self._answers) >= TOGETHER or not get:
                self._send_answers()

    def send(self, message: object) -> None:
        """Send a message; the owner may have ended."""
        with suppress(OSError):
            self._owner.send_bytes(pickle.dumps(message))

    def _send_answers(self) -> None:
        if self._answers:
            self.send((self._answers, time.process_time()))
            self._answers.clear()

    def _begin(self, request: PageRequest) -> None:
        try:
            get = self._pages.begin(request.path, request.etag)
        except Exception as error:  # noqa: BLE001 - it becomes the answer
            self._fail(request, error)
            return
        self._requests[get] = request
        self._transfers.begin(get)

    def _take(self, get: Get | File) -> None:
        request = self._requests.pop(get)
        try:
            self._answers.append((request.number, self._computed(request, get)))
        except Gone as error:
            if request.first and request.work != FINGERPRINT:
                self._begin(replace(request, first=False))  # the page is known, so that it is gone must be said twice
            else:
                self._fail(request, error)
        except Exception as error:  # noqa: BLE001 - it becomes the answer
            self._fail(request, error)

    def _fail(self, request: PageRequest, error: Exception) -> None:
        """Answer by an error of ours as it is, by another as a crash."""
        if isinstance(error, NeardupError):
            self._answers.append((request.number, error))
        else:
            traceback.print_exception(error)
            self._answers.append((request.number, (crash_of(error), None)))

    def _computed(self, request: PageRequest, get: Get | File) -> Answer:
        """What a page gives; on record meanwhile, so that it is known which page takes too much."""
        self._record.begin(request.number)
        try:
            page = self._pages.page_of(get)
            if page is None:
                return NotModified(), None
            fetched = time.perf_counter()
            text = text_of(page, self._extraction)
            extracted = time.perf_counter()
            result = WORKS[request.work](page, text) if isinstance(text, str) else text
            return result, (fetched - request.began, extracted - fetched, time.perf_counter() - extracted)
        except MemoryError:
            os._exit(1)  # with the page on record; what is left of the process cannot be relied on
        finally:
            self._record.end()


def main(owners: Sequence[tuple[int, int]]) -> None:
    """Serve the owner of each of these connections by a process each, and end with it.

    A connection is the descriptors of a socket and of a `Record`.  The first message is this process's id and
    its `Greeting`.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to all of a service: the owner decides when this ends
        signal.signal(number, signal.SIG_IGN)
    try:
        compiled = fingerprint_version.warm_up()
    except RuntimeError as error:
        sys.exit(f"neardup: {error}")
    collect_seldom()
    (mine, record), forked = _fork(owners)
    with suppress(EOFError, OSError), Connection(mine) as owner:
        process = _ReaderProcess(owner, Record(record), *owner.recv())
        greeting: Greeting = fingerprint_version.version(), compiled
        process.send((os.getpid(), greeting))
        process.serve()
    for child in forked:
        os.waitpid(child, 0)
    os._exit(0)


def _fork(owners: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], list[int]]:
    """Become a process for each connection; which is this one's, and the ids of those that it forked."""
    mine, forked = owners[0], list[int]()
    for other in owners[1:]:
        if child := os.fork():
            forked.append(child)
        else:
            mine, forked = other, []
            break
    for other in owners:
        if other != mine:  # or the end of its process would go unnoticed
            os.close(other[0])
    return mine, forked
