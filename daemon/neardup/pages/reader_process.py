"""A process that fetches, parses and fingerprints pages, and the server that forks such processes.

Why processes: whole backfills of 20 KB pages in steady state, on two cores shared with nginx and Redis, ran at 2,480
to 2,560 stories/s with two reader processes (690 us of CPU a story in all), and at 1,500 with threads of the daemon
(880 us), which contend for its interpreter lock.  Fetching with coroutines cost more than either.
"""

import os
import pickle
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

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
from neardup.core.text.extraction import Extraction
from neardup.errors import Gone, NeardupError
from neardup.garbage_collection import collect_seldom
from neardup.pages.fork_server import STDERR
from neardup.pages.local import File, Given
from neardup.pages.plain_content import PlainContent
from neardup.pages.results import NotModified, crash_of
from neardup.pages.store import REFERENCE, Pages, WorkPages, open_transfers
from neardup.pages.watchdog import Record, record_pid

if TYPE_CHECKING:
    from neardup.pages.s3 import Get  # its libraries are optional

LONGEST_ENVIRONMENT, DESCRIPTORS = 4_000_000, 3  # of a message: bytes, and how many
STDOUT = 1  # the descriptor
ANSWERS_PER_MESSAGE = 8  # while more are about to follow: a message costs more than an answer

Seconds = tuple[float, float, float]  # spent on fetching, extracting and fingerprinting a page
Answer = tuple[object, Seconds | None]
Greeting = str  # the version of this process's fingerprints
# The store of the pages, how text is extracted, the folder of submitted pages, and the store of the works.
Settings = tuple[PlainContent, Extraction, Path | None, WorkPages | None]


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
        content: PlainContent,
        extraction: Extraction,
        submitted: Path | None,
        works: WorkPages | None,
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


def main(control: int) -> None:
    """Fork a process for each message from the socket `control`, until its other end is closed.

    A message is the environment of the process, with the descriptors of its socket, of a `Record` and of its stderr.
    The first message that a process sends is its `Greeting`.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # systemd sends them to every process: the owner decides the end
        signal.signal(number, signal.SIG_IGN)
    try:
        fingerprint_version.check_native_core()
        greeting = fingerprint_version.version()
    except RuntimeError as error:
        sys.exit(f"neardup: {error}")
    signal.signal(signal.SIGCHLD, _reap)
    collect_seldom()
    with socket.socket(fileno=control) as requests:
        while True:
            environment, descriptors, _, _ = socket.recv_fds(requests, LONGEST_ENVIRONMENT, DESCRIPTORS)
            if not environment:
                _reap(signal.SIGCHLD, None)
                os._exit(0)
            if not (pid := os.fork()):
                requests.close()
                _serve(environment, descriptors, greeting)
            record_pid(descriptors[1], pid)
            for descriptor in descriptors:
                os.close(descriptor)


def _reap(_: int, __: object) -> None:
    """Take note of the processes that have ended."""
    with suppress(ChildProcessError):  # none is left
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(environment: bytes, descriptors: Sequence[int], greeting: Greeting) -> NoReturn:
    """Serve the owner until it closes the connection, and end this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sock, record, stderr = descriptors
    record_pid(record, os.getpid())  # the server may do so too late
    os.environ.clear()
    os.environ.update(pickle.loads(environment))  # noqa: S301 - from the owner
    for stream in (STDOUT, STDERR):
        os.dup2(stderr, stream)
    with suppress(EOFError, OSError), Connection(sock) as owner:
        process = _ReaderProcess(owner, Record(record), *owner.recv())
        process.send(greeting)
        process.serve()
    os._exit(0)
