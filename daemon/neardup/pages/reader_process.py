"""A process that fetches, parses and fingerprints pages, started by neardup.pages.reader_pool.

Why processes: whole backfills of 20 KB pages in steady state, on two cores shared with nginx and Redis, ran at 2,480
to 2,560 stories/s with two reader processes (690 us of CPU a story in all), and at 1,500 with threads of the daemon
(880 us), which contend for its interpreter lock.  Fetching with coroutines cost more than either.
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
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.page import (
    Page,
    StoryText,
    fingerprint_story,
    prepare_story,
    shingle_story,
    split_story,
    text_of,
)
from neardup.core.text.html import Extraction
from neardup.errors import Gone, NeardupError
from neardup.garbage_collection import collect_seldom
from neardup.pages.local import File, Given
from neardup.pages.results import NotModified, crash_of
from neardup.pages.store import REFERENCE, Pages, WorkPages, open_transfers
from neardup.pages.watchdog import Record

if TYPE_CHECKING:
    from neardup.pages.s3 import Get  # its libraries are optional

ANSWERS_PER_MESSAGE = 8  # while more are about to follow: a message costs more than an answer

Seconds = tuple[float, float, float]  # spent on fetching, extracting and fingerprinting a page
Answer = tuple[object, Seconds | None]
Greeting = tuple[str, bool]  # the version of this process's fingerprints, and whether compiled code makes them


class Request(NamedTuple):
    """One of OPERATIONS, on a page or its path, whose last known ETag is given.

    `parsed` is as in `text_of`, and `named` as in `fingerprint_story`.
    """

    operation: str
    page: str | bytes
    etag: str | None = None
    parsed: bool = True
    named: bool = True


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request under way; `is_first` until it is sent to the store again because its page was gone."""

    number: int
    asked: Request
    began: float
    is_first: bool = True


FINGERPRINT, SHINGLE, SPLIT, PREPARE, READ = "fingerprint", "shingle", "split", "prepare", "read"
OPERATIONS: dict[str, Callable[[Request, Page, StoryText], object]] = {
    FINGERPRINT: lambda asked, page, story: fingerprint_story(page, story, named=asked.named),
    SHINGLE: lambda _, __, story: shingle_story(story.text),
    SPLIT: lambda _, __, story: split_story(story.text, story.marks),
    PREPARE: lambda _, __, story: prepare_story(story.text, story.marks),
    READ: lambda asked, page, story: (fingerprint_story(page, story, named=asked.named), story.text),
}


class _ReaderProcess:
    """Answers the requests of its owner: it fetches many pages at a time, and computes one."""

    def __init__(  # noqa: PLR0917 - what its owner sends
        self,
        owner: Connection,
        record: Record,
        content: Content,
        extraction: Extraction,
        submitted: Path | None = None,
        works: WorkPages | None = None,
    ) -> None:
        self._owner = owner
        self._record = record
        self._pages = Pages(content, submitted, works)
        self._extraction = extraction
        self._extraction_of_works = extraction if works is None else works.extraction
        contents = [content] if works is None else [content, works.content]
        self._transfers = open_transfers(contents, owner.fileno())
        self._requests: dict[Get | File | Given, PageRequest] = {}
        self._answers: list[tuple[int, Answer | Exception]] = []

    def serve(self) -> None:
        """Answer requests until the owner closes the connection.  Raises EOFError then."""
        while True:
            if self._transfers.advance(wait=not self._answers):
                for number, asked in self._owner.recv():
                    self._begin(PageRequest(number, asked, time.perf_counter()))
            self._record.set_body_bytes(self._transfers.body_bytes)
            if get := self._transfers.pop_finished():
                self._answer(get)
            if len(self._answers) >= ANSWERS_PER_MESSAGE or not get:
                self._send_answers()

    def send(self, message: object) -> None:
        """Send a message, unless the owner has ended."""
        with suppress(OSError):
            self._owner.send_bytes(pickle.dumps(message))

    def _send_answers(self) -> None:
        if self._answers:
            self.send((self._answers, time.process_time()))
            self._answers.clear()

    def _begin(self, request: PageRequest) -> None:
        try:
            page = request.asked.page
            get = Given(page) if isinstance(page, bytes) else self._pages.begin(page, request.asked.etag)
        except Exception as error:  # noqa: BLE001 - it becomes the answer
            self._fail(request, error)
            return
        self._requests[get] = request
        self._transfers.begin(get)

    def _answer(self, get: "Get | File | Given") -> None:
        request = self._requests.pop(get)
        try:
            self._answers.append((request.number, self._compute(request, get)))
        except Gone as error:
            if request.is_first and request.asked.operation != FINGERPRINT:
                # the page existed before: the store must confirm its loss
                self._begin(replace(request, is_first=False))
            else:
                self._fail(request, error)
        except Exception as error:  # noqa: BLE001 - it becomes the answer
            self._fail(request, error)

    def _fail(self, request: PageRequest, error: Exception) -> None:
        """Answer with an error: one of neardup.errors as it is, any other as a crash."""
        if isinstance(error, NeardupError):
            self._answers.append((request.number, error))
        else:
            traceback.print_exception(error)
            self._answers.append((request.number, (crash_of(error), None)))

    def _compute(self, request: PageRequest, get: "Get | File | Given") -> Answer:
        """Carry out the operation on a fetched page; the page is on record meanwhile, for the watchdog."""
        self._record.begin(request.number)
        try:
            page = self._pages.page_of(get)
            if page is None:
                return NotModified(), None
            fetched = time.perf_counter()
            story = text_of(page, self._extraction_of(request), parsed=request.asked.parsed)
            extracted = time.perf_counter()
            operation = OPERATIONS[request.asked.operation]
            result = operation(request.asked, page, story) if isinstance(story, StoryText) else story
            return result, (fetched - request.began, extracted - fetched, time.perf_counter() - extracted)
        except MemoryError:
            os._exit(1)  # with the page still on record: the rest of the process cannot be relied on
        finally:
            self._record.end()

    def _extraction_of(self, request: PageRequest) -> Extraction:
        page = request.asked.page
        is_of_work = isinstance(page, str) and page.startswith(REFERENCE)
        return self._extraction_of_works if is_of_work else self._extraction


def main(connections: Sequence[tuple[int, int]]) -> None:
    """Serve each of these connections from a process of its own, until its owner closes it.

    A connection is a pair of descriptors: of a socket, and of a `Record`.  The first message that a process sends is
    its id and its `Greeting`.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # systemd sends them to every process: the owner decides the end
        signal.signal(number, signal.SIG_IGN)
    try:
        compiled = fingerprint_version.warm_up()
    except RuntimeError as error:
        sys.exit(f"neardup: {error}")
    collect_seldom()
    (sock, record), forked = _fork(connections)
    with suppress(EOFError, OSError), Connection(sock) as owner:
        process = _ReaderProcess(owner, Record(record), *owner.recv())
        greeting: Greeting = fingerprint_version.version(), compiled
        process.send((os.getpid(), greeting))
        process.serve()
    for child in forked:
        os.waitpid(child, 0)
    os._exit(0)


def _fork(connections: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], list[int]]:
    """Fork a process for each connection but the first; returns this process's connection and its children's ids."""
    own, forked = connections[0], list[int]()
    for connection in connections[1:]:
        if child := os.fork():
            forked.append(child)
        else:
            own, forked = connection, []
            break
    for connection in connections:
        if connection != own:  # an open copy would hide the end of its process from the owner
            os.close(connection[0])
    return own, forked
