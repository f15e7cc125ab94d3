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
from array import array
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, Self

from msgspec import Struct, field

from neardup.core.columns import Records, pack
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.page import (
    Page,
    PageFingerprinted,
    PageStory,
    extract_story,
    fingerprint_story,
    make_comparable,
    prepare,
    refuse_short,
)
from neardup.core.text.extraction import Extraction
from neardup.core.verify.text import Text
from neardup.errors import Gone, NeardupError, Transient
from neardup.pages.results import NotModified, make_crash
from neardup.pages.store import REFERENCE, AnyContent, File, GivenPage, Pages, PlainContent, WorkPages, open_transfers
from neardup.pages.watchdog import Record, record_pid
from neardup.process import collect_seldom
from neardup.records import Marks

if TYPE_CHECKING:
    from neardup.pages.s3 import Get  # its libraries are optional

LONGEST_MESSAGE, DESCRIPTORS = 4_000_000, 3  # of a message: bytes, and how many
STDOUT, STDERR = 1, 2  # the descriptors
# Between two looks at the transfers pages are computed for so long: a look takes a tenth of the time of a usual page.
SECONDS_BETWEEN_LOOKS = 0.003
ANSWERS_PER_MESSAGE = 32  # while more are about to follow: a message costs more than an answer
ANSWER_BYTES = 64_000  # a text counts as one answer more for each of these, so that few long ones wait to be sent

Greeting = str  # the version of this process's fingerprints


class Settings(NamedTuple):
    """The store of the pages, how text is extracted, the folder of submitted pages, and the store of the works."""

    content: PlainContent
    extraction: Extraction
    submitted: Path | None
    works: WorkPages | None

    @property
    def contents(self) -> list[AnyContent]:
        """The stores that a process reads."""
        return [self.content] if self.works is None else [self.content, self.works.content]


class Request(NamedTuple):
    """One of OPERATIONS, on some pages or their paths, with the last known ETag of each.

    `parsed` is as in `extract_story`, and `named` as in `fingerprint_story`.  `most` is how many pages the process may
    fetch at a time from now on.
    """

    operation: str
    pages: Sequence[str | bytes]
    etags: Sequence[str | None] | None = None
    named: Sequence[bool] | None = None
    parsed: bool = True
    most: int = 1


class Answers(NamedTuple):
    """The answers to some pages of a request, by their places in it.

    The pages at the places `at` were fingerprinted: `records` holds them.  The others are results, and exceptions of
    neardup.errors.  `seconds` are those to fetch, extract and fingerprint each page that FINGERPRINT extracted,
    floats of 4 bytes, and `fetching` those that the pages of all other results took to fetch.  `repeats` say why
    requests to the store were sent again.
    """

    at: list[int]
    records: Records
    seconds: bytes
    others: dict[int, object]
    fetching: list[float]
    repeats: list[Transient]

    @classmethod
    def of_errors(cls, errors: Mapping[int, NeardupError]) -> Self:
        return cls([], Records(b"", b"", {}), b"", dict(errors), [], [])

    @property
    def places(self) -> list[int]:
        """The pages that are answered."""
        return [*self.at, *self.others]


class PageRequest(Struct):
    """A page of a request.

    `number` is that of the request, plus the `place` of the page in it.  `began` is when its transfer did.  `repeats`
    say why it was sent to the store again; its `loss`, that it was gone, joins those of the answers unless the store
    confirms it.
    """

    number: int
    place: int
    request: Request
    began: float = 0.0
    loss: Gone | None = None
    repeats: list[Transient] = field(default_factory=list)

    @property
    def page(self) -> str | bytes:
        return self.request.pages[self.place]

    @property
    def etag(self) -> str | None:
        return None if self.request.etags is None else self.request.etags[self.place]

    @property
    def named(self) -> bool:
        return self.request.named is None or self.request.named[self.place]


FINGERPRINT, COMPARE, SHOW, CHECK, READ = "fingerprint", "compare", "show", "check", "read"
OPERATIONS: dict[str, Callable[[PageRequest, Page, PageStory], object]] = {
    FINGERPRINT: lambda request, page, story: fingerprint_story(page, story, named=request.named),
    COMPARE: lambda _, __, story: make_comparable(story.text),
    SHOW: lambda _, __, story: refuse_short(story.text),
    CHECK: lambda _, __, story: prepare(story.text),
    READ: lambda request, page, story: (fingerprint_story(page, story, named=request.named), story.text.written),
}


class _Answered(Struct):
    """The answers to a request that are yet to be sent."""

    at: list[int] = field(default_factory=list)
    headers: list[bytes] = field(default_factory=list)
    rests: list[bytes] = field(default_factory=list)
    marks: dict[int, Marks] = field(default_factory=dict)
    others: dict[int, object] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    fetching: list[float] = field(default_factory=list)
    repeats: list[Transient] = field(default_factory=list)

    def add(self, place: int, page: PageFingerprinted) -> None:
        header, rest = pack(page)
        if page.marks:
            self.marks[len(self.at)] = page.marks
        self.at.append(place)
        self.headers.append(header)
        self.rests.append(rest)

    def message(self) -> Answers:
        records = Records(b"".join(self.headers), b"".join(self.rests), self.marks)
        return Answers(self.at, records, array("f", self.seconds).tobytes(), self.others, self.fetching, self.repeats)


class _ReaderProcess:
    """Answers the requests of its owner: it fetches many pages at a time, and computes one."""

    def __init__(self, owner: Connection, record: Record, settings: Settings) -> None:
        self._owner = owner
        self._record = record
        self._settings = settings
        self._pages = Pages(settings.content, settings.submitted, settings.works)
        self._transfers = open_transfers(settings.contents, owner.fileno())
        self._most = 1
        self._waiting: deque[PageRequest] = deque()
        self._requests: dict[Get | File, PageRequest] = {}  # begun
        self._answered: defaultdict[int, _Answered] = defaultdict(_Answered)  # by the number of the request
        self._unsent = 0  # answers

    def serve(self) -> None:
        """Answer requests until the owner closes the connection.  Raises EOFError then."""
        while True:
            if self._transfers.advance(wait=not self._unsent):
                for number, request in self._owner.recv():
                    self._most = request.most
                    self._waiting += (
                        PageRequest(number + place, place, request) for place in range(len(request.pages))
                    )
            while self._waiting and len(self._requests) < self._most:
                self._begin(self._waiting.popleft())
            self._record.set_body_bytes(self._transfers.body_bytes)
            get = self._transfers.pop_finished()
            if self._unsent >= ANSWERS_PER_MESSAGE or not get:
                self._send_answers()
            next_look = time.perf_counter() + SECONDS_BETWEEN_LOOKS
            while get:
                self._answer(get)
                get = self._transfers.pop_finished() if time.perf_counter() < next_look else None

    def send(self, message: object) -> None:
        """Send a message, unless the owner has ended."""
        with suppress(OSError):
            self._owner.send_bytes(pickle.dumps(message))

    def _send_answers(self) -> None:
        if self._unsent:
            answers = [(number, answered.message()) for number, answered in self._answered.items()]
            self.send((answers, time.process_time()))
            self._answered.clear()
            self._unsent = 0

    def _begin(self, request: PageRequest) -> None:
        request.began = time.perf_counter()
        page, etag = request.page, request.etag
        try:
            get = GivenPage(page) if isinstance(page, bytes) else self._pages.begin(page, etag)
        except Exception as error:  # noqa: BLE001 - it becomes the answer
            self._fail(request, error)
            return
        self._requests[get] = request
        self._transfers.begin(get)

    def _answer(self, get: "Get | File") -> None:
        request = self._requests.pop(get)
        if get.resent:
            closed = Transient(f"{get.url}: the store closed the connection", "store_error")
            request.repeats += [closed] * get.resent
        try:
            self._compute(request, get)
        except Gone as error:
            if request.loss or request.request.operation == FINGERPRINT or isinstance(get, File):
                self._fail(request, error)
            else:  # the page existed before: S3 must confirm its loss, once
                request.loss = error
                self._begin(request)
        except Exception as error:  # noqa: BLE001 - it becomes the answer
            self._fail(request, error)

    def _fail(self, request: PageRequest, error: Exception) -> None:
        """Answer with an error: one of neardup.errors as it is, any other as a crash."""
        if isinstance(error, NeardupError):
            self._add(request, error)
        else:
            traceback.print_exception(error)
            self._add(request, make_crash(error))

    def _add(self, request: PageRequest, answer: object) -> None:
        self._unsent += 1 + (answer.nbytes // ANSWER_BYTES if isinstance(answer, Text) else 0)
        answered = self._answered[request.number - request.place]
        answered.repeats += request.repeats
        if request.loss and not isinstance(answer, Gone):
            answered.repeats.append(Transient(f"{request.loss}: asked once more", "missing"))
        if isinstance(answer, PageFingerprinted):
            answered.add(request.place, answer)
        else:
            answered.others[request.place] = answer

    def _compute(self, request: PageRequest, get: "Get | File") -> None:
        """Carry out the operation on a fetched page; the page is on record meanwhile, for the watchdog."""
        self._record.begin(request.number)
        try:
            page = self._pages.read_page(get)
            fetched = time.perf_counter()
            answered = self._answered[request.number - request.place]
            if page is None:
                self._add(request, NotModified())
                answered.fetching.append(fetched - request.began)
                return
            story = extract_story(page, self._get_extraction(request), parsed=request.request.parsed)
            extracted = time.perf_counter()
            operation = OPERATIONS[request.request.operation]
            result = operation(request, page, story) if isinstance(story, PageStory) else story
            seconds = fetched - request.began, extracted - fetched, time.perf_counter() - extracted
            if request.request.operation == FINGERPRINT:
                answered.seconds += seconds
            else:
                answered.fetching.append(seconds[0])
            self._add(request, result)
        except MemoryError:
            os._exit(1)  # with the page still on record: the rest of the process cannot be relied on
        finally:
            self._record.end()

    def _get_extraction(self, request: PageRequest) -> Extraction:
        page, works = request.page, self._settings.works
        if works is not None and isinstance(page, str) and page.startswith(REFERENCE):
            return works.extraction
        return self._settings.extraction


def main(control: int) -> None:
    """Fork a process for each message from the socket `control`, until its other end is closed.

    A message is the environment of the process and the modules to load before, with the descriptors of its socket, of
    a `Record` and of its stderr.
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
            message, descriptors, _, _ = socket.recv_fds(requests, LONGEST_MESSAGE, DESCRIPTORS)
            if not message:
                _reap(signal.SIGCHLD, None)
                os._exit(0)
            environment, modules = pickle.loads(message)  # noqa: S301 - from the owner
            _load(modules)
            if not (pid := os.fork()):
                requests.close()
                _serve(environment, descriptors, greeting)
            record_pid(descriptors[1], pid)
            for descriptor in descriptors:
                os.close(descriptor)


def _load(modules: Sequence[str]) -> None:
    """Load those of these modules that are not yet; a process says itself which one is missing."""
    if not sys.modules.keys() >= {*modules}:
        for module in modules:
            with suppress(ImportError):
                import_module(module)
        collect_seldom()


def _reap(_: int, __: object) -> None:
    """Take note of the processes that have ended."""
    with suppress(ChildProcessError):  # none is left
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve(environment: Mapping[str, str], descriptors: Sequence[int], greeting: Greeting) -> NoReturn:
    """Serve the owner until it closes the connection, and end this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    sock, record, stderr = descriptors
    record_pid(record, os.getpid())  # the server may do so too late
    os.environ.clear()
    os.environ.update(environment)
    for stream in (STDOUT, STDERR):
        os.dup2(stderr, stream)
    with suppress(EOFError, OSError), Connection(sock) as owner:
        process = _ReaderProcess(owner, Record(record), owner.recv())
        process.send(greeting)
        process.serve()
    os._exit(0)
