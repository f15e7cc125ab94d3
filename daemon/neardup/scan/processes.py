"""The processes of a scan: they read documents, and verify pairs by the texts that they kept.

They are forked before this process has threads and an event loop, with what it has loaded.  A process that dies is not
replaced: the caller of its operation fails.

They read, extract and fingerprint, and keep the texts in scratch files.  A document that a process cannot digest, or
dies of, is left to a pool of reader processes, which have a watchdog.
"""

import asyncio
import os
import resource
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from cachetools import LRUCache

from neardup.config import Detection
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.page import PageFingerprinted, Unreadable, extract_story, fingerprint_story
from neardup.core.text.extraction import Extraction
from neardup.core.text.scripts import ENGLISH, UnknownScript, guess_language
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import ComparedPair, assess_all
from neardup.core.verify.text import Text
from neardup.errors import NeardupError
from neardup.nomination.in_memory import Pair
from neardup.pages.reader_pool import PROCESSES
from neardup.pages.results import Failure, make_failure
from neardup.pages.store import Pages, PlainContent
from neardup.pages.watchdog import CPU_SECONDS, MOST_MEMORY_BYTES
from neardup.process import collect_seldom
from neardup.records import Assessment, Candidate, Language, PairedStory
from neardup.source.documents import Document

CACHE_BYTES = 64_000_000  # of texts, by each process
HELD_BYTES = CACHE_BYTES // 2  # of texts that are compared at a time
DATA_PAGES = 5  # the place of the number in /proc/self/statm

Operations = Mapping[str, Callable[..., Any]]


class WorkerDied(Exception):
    """The process died that carried out an operation, or none is left to do so."""


class Workers:
    """Forked processes, seen from their owner."""

    def __init__(self, connections: list[Connection]) -> None:
        self._living = list(connections)
        self._idle: asyncio.Queue[Connection] = asyncio.Queue()
        for connection in connections:
            self._idle.put_nowait(connection)

    def __len__(self) -> int:
        return len(self._living)

    async def run(self, operation: str, *arguments: object) -> Any:
        """Carry out an operation in a process that is idle.  Raises WorkerDied, and what the operation raises."""
        connection = await self._idle.get()
        try:
            return await self._ask(connection, operation, arguments)
        finally:
            self._idle.put_nowait(connection)  # of one that died, too: who waits for it sees that

    async def run_everywhere(self, operation: str, *arguments: object) -> None:
        """Carry out an operation in each process that is left, while none has another."""
        requests = (self._ask(connection, operation, arguments) for connection in self._living)
        for result in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(result, BaseException) and not isinstance(result, WorkerDied):
                raise result

    async def _ask(self, connection: Connection, operation: str, arguments: tuple[object, ...]) -> Any:
        def ask() -> Any:
            connection.send((operation, arguments))
            return connection.recv()

        try:
            result, error = await asyncio.to_thread(ask)
        except (EOFError, OSError) as death:
            if connection in self._living:
                self._living.remove(connection)
            raise WorkerDied from death
        if error is not None:
            raise error
        return result


@contextmanager
def fork_workers(operations_of: Callable[[int], Operations]) -> Iterator[Workers]:
    """PROCESSES that have the operations of their numbers, from 0; they end with the block, or with this process."""
    collect_seldom()
    pids, owned = list[int](), list[Connection]()
    try:
        for number in range(PROCESSES):
            ours, theirs = socket.socketpair()
            owned.append(Connection(ours.detach()))
            if (pid := os.fork()) == 0:
                for connection in owned:
                    connection.close()  # else no process would see the end of its owner
                _serve(Connection(theirs.detach()), operations_of(number))
            theirs.close()
            pids.append(pid)
        yield Workers(owned)
    finally:
        for connection in owned:
            connection.close()
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _serve(owner: Connection, operations: Operations) -> NoReturn:
    """Carry out operations until the owner has ended; then end this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner ends this process
    _limit_memory()
    with suppress(EOFError, OSError):
        while True:
            name, arguments = owner.recv()
            owner.send(_carry_out(operations[name], arguments))
    os._exit(0)


def _carry_out(operation: Callable[..., object], arguments: tuple[object, ...]) -> tuple[object, Exception | None]:
    try:
        return operation(*arguments), None
    except MemoryError:
        os._exit(1)  # the rest of the process cannot be relied on
    except Exception as error:  # noqa: BLE001 - it is raised in the owner
        return None, error


def limit_time() -> None:
    """Let this process die unless it calls this again within CPU_SECONDS of its CPU time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)


def lift_time_limit() -> None:
    """Undo `limit_time`."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _limit_memory() -> None:
    """Let allocations fail that take this process MOST_MEMORY_BYTES beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[DATA_PAGES])
    most = pages * os.sysconf("SC_PAGE_SIZE") + MOST_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


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

    `wrong_script` says why its language is not known.  `text` is None where there is nothing to compare.  `confidence`
    is that of a language that was guessed.
    """

    language: Language
    result: PageFingerprinted | Failure
    text: KeptText | None = None
    wrong_script: str | None = None
    confidence: float | None = None


class Reader:
    """Reads documents for one process by an `extraction`, and keeps their texts in one of the scratch files."""

    def __init__(self, content: PlainContent, extraction: Extraction, scratch: Scratch, number: int) -> None:
        self._extraction = extraction
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
            page = self._pages.read_page(self._pages.begin(document.path))
        except NeardupError as error:
            return ReadDocument(language, make_failure(error))
        assert page is not None  # without an ETag none is unchanged
        story = extract_story(page, self._extraction)
        if isinstance(story, Unreadable):
            return ReadDocument(language, story)
        return self.keep(document, fingerprint_story(page, story, named=False), story.text.utf8)

    def keep(self, document: Document, result: PageFingerprinted | Failure, text: bytes | None) -> ReadDocument:
        """Detect the language of a text that was read, in UTF-8, and keep it to be compared."""
        language, confidence = document.language or ENGLISH, None
        if text is not None and document.language is None:
            try:
                language, confidence = guess_language(text.decode())
            except UnknownScript as error:
                return ReadDocument(language, result, wrong_script=str(error))
        if text is None or not isinstance(result, PageFingerprinted):
            return ReadDocument(language, result)
        return ReadDocument(language, result, self._scratch.keep(self._number, text), confidence=confidence)


class Verifier:
    """Verifies pairs for one process."""

    def __init__(self, detection: Detection, scratches: Sequence[Scratch]) -> None:
        self._detection = detection
        self._scratches = scratches
        self._stories: Sequence[PairedStory] = ()
        self._kept: Sequence[KeptText] = ()
        self._common: Mapping[Language, PassageHashes] = {}
        self._cache: LRUCache[int, Text] = LRUCache(CACHE_BYTES, attrgetter("nbytes"))

    def begin(
        self, stories: Sequence[PairedStory], kept: Sequence[KeptText], common: Mapping[Language, PassageHashes]
    ) -> None:
        """Take the stories to compare, their texts, and the hashes of common passages, by language."""
        self._stories, self._kept, self._common = stories, kept, common

    def verify(self, pairs: Sequence[Pair]) -> list[tuple[Pair, Assessment]]:
        """The pairs of places that are copies or near misses."""
        found, common_of = list[tuple[Pair, Assessment]](), lambda language: self._common.get(language, NO_HASHES)
        for batch in self._divide_pairs(pairs):
            assessed = assess_all([compared for _, compared in batch], self._detection.of, common_of)
            for (pair, _), assessment in zip(batch, assessed, strict=True):
                if assessment is not None:
                    found.append((pair, assessment))
        return found

    def _divide_pairs(self, pairs: Sequence[Pair]) -> Iterator[list[tuple[Pair, ComparedPair]]]:
        """The pairs with their texts, as many at a time as have HELD_BYTES of texts, at least one."""
        batch, size, held = list[tuple[Pair, ComparedPair]](), 0, dict[int, Text]()
        for pair in pairs:
            if size > HELD_BYTES:
                yield batch
                batch, size, held = [], 0, {}
            sides = Candidate(*(self._stories[place] for place in pair))
            if sides.a.text_hash == sides.b.text_hash:
                batch.append((pair, ComparedPair(sides, None, None)))
                continue
            for place in pair:
                if place not in held:
                    held[place] = self._load_text(place)
                    size += held[place].nbytes
            batch.append((pair, ComparedPair(sides, *(held[place] for place in pair))))
        yield batch

    def _load_text(self, place: int) -> Text:
        if (text := self._cache.get(place)) is None:
            kept = self._kept[place]
            text = Text(self._scratches[kept.file].load(kept)).keep_compared()
            if text.nbytes <= CACHE_BYTES:
                self._cache[place] = text
        return text
