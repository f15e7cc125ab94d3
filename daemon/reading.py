"""A process that fetches, parses and fingerprints pages, started by daemon.readers.

Measured on two cores that ran nginx and Redis too, pages of 20 KB, whole backfills, steady state: two such
processes 2,480 to 2,560 stories/s and 690 us of CPU a story in all, threads of the daemon's own 1,500
and 880, for they wait on each other's interpreter lock; fetching by coroutines cost more than either.
"""

import os
import pickle
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, BinaryIO, Self

from daemon.budget import Record
from daemon.config import Content
from daemon.core import golden
from daemon.core.fingerprint import fingerprint_text, text_hash
from daemon.core.html import Extraction, Unreadable, page_text
from daemon.core.text import tokens
from daemon.core.verify import Shingled, shingled
from daemon.errors import NeardupError
from daemon.fetch import Document, Pages
from daemon.garbage import collect_seldom
from daemon.records import Fingerprint, Skip

MIN_WORDS = 10  # shorter pages are headings and notices; all of them alike, none of them copied

LENGTH = struct.Struct("!I")  # in front of each message of answers
TOGETHER = 8  # answers in a message, while more are about to come: to send each costs more than to count a batch's

Request = tuple[int, str, str, str | None]  # a number to answer to, one of WORKS, a page's path, the ETag it had


@dataclass(frozen=True, slots=True)
class Read:
    """A page as it was read: its fingerprint, and the seconds that each stage took."""

    fingerprint: Fingerprint
    etag: str | None
    fetch: float
    extract: float
    fingerprinting: float

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickled in half the time that looking its fields up would take."""
        return type(self), (self.fingerprint, self.etag, self.fetch, self.extract, self.fingerprinting)


def read_page(document: Document, extraction: Extraction, fetch: float = 0.0) -> Read:
    """A page -> the fingerprint of its story.  Raises Unreadable."""
    began = time.perf_counter()
    text = page_text(document.body, document.content_type, extraction)
    extracted = time.perf_counter()
    made = fingerprint_text(text)
    if made is None or made.words < MIN_WORDS:
        raise Unreadable(Skip.EMPTY if made is None else Skip.TOO_SHORT)
    return Read(made, document.etag, fetch, extracted - began, time.perf_counter() - extracted)


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
    """Answers the requests that come over a link, as many at a time as come, some in one message."""

    def __init__(self, link: socket.socket, record: Record, content: Content, extraction: Extraction) -> None:
        self._link = link
        self._record = record
        self._computing = threading.Lock()  # one page at a time, so that it is known which takes too much
        self._pages = Pages(content)
        self._extraction = extraction
        self._waiting: SimpleQueue[Request] = SimpleQueue()
        self._lock = threading.Lock()
        self._sending = threading.Lock()  # not the other: both ends would wait for each other
        self._under_way = self._threads = self._held = 0
        self._at_hand = 0  # pages that are here and not yet answered
        self._answers: list[tuple[int, Any]] = []

    def serve(self, requests: BinaryIO) -> None:
        """Answer requests until there are no more.  Raises EOFError."""
        while True:
            together: list[Request] = pickle.load(requests)  # noqa: S301 - of the process that started this one
            with self._lock:
                self._under_way += len(together)
                while self._threads < self._under_way:
                    self._threads += 1
                    threading.Thread(target=self._work, daemon=True).start()
            for request in together:
                self._waiting.put(request)

    def send(self, message: object) -> None:
        """From any thread; whoever the message is for may be gone."""
        pickled = pickle.dumps(message)
        with self._sending, suppress(OSError):
            self._link.sendall(LENGTH.pack(len(pickled)) + pickled)

    def _work(self) -> None:
        while True:
            number, work, path, etag = self._waiting.get()
            answer = self._answer(number, work, path, etag)
            with self._lock:
                self._under_way -= 1
                self._answers.append((number, answer))
                if self._at_hand and len(self._answers) < TOGETHER:
                    continue  # whoever has a page at hand sends this, too
                answers, self._answers = self._answers, []
            self.send((answers, time.process_time()))

    def _answer(self, number: int, work: str, path: str, etag: str | None) -> Any:
        began, held = time.perf_counter(), 0

        def hold(size: int) -> None:
            nonlocal held
            held += size
            self._hold(size)

        try:
            first = work == read_page.__name__
            document = self._pages.get(path, etag, hold) if first else self._pages.get_once_more(path, hold)
            fetched = time.perf_counter() - began
            return None if document is None else self._computed(number, work, document, fetched)
        except (NeardupError, Unreadable) as error:  # raised again where the page was asked for
            return error
        except BaseException as error:  # noqa: BLE001 - a panic of obstore's is one; some cannot be sent
            traceback.print_exc()
            return RuntimeError(f"{type(error).__name__}: {error}")
        finally:
            self._hold(-held)

    def _computed(self, number: int, work: str, document: Document, fetched: float) -> Any:
        with self._lock:
            self._at_hand += 1
        try:
            with self._computing:
                self._record.begin(number)
                try:
                    return WORKS[work](document, self._extraction, fetched)
                except MemoryError:
                    os._exit(1)  # with the page on record; what is left of the process cannot be relied on
                finally:
                    self._record.end()
        finally:
            with self._lock:
                self._at_hand -= 1

    def _hold(self, size: int) -> None:
        with self._lock:
            self._held += size
            self._record.hold(self._held)


def main(links: Sequence[tuple[int, int]]) -> None:
    """Serve whoever started this process over each of these links, by a process each, and end with it.

    A link is the descriptors of a socket and of a `Record`.  The first thing told is this process's id, the
    version of the fingerprints made here, and whether by compiled code.
    """
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to all of a service: who started it decides when it ends
        signal.signal(number, signal.SIG_IGN)
    try:
        compiled = golden.warm_up()
    except RuntimeError as error:
        sys.exit(f"neardup: {error}")
    collect_seldom()
    (mine, record), forked = _fork(links)
    with suppress(EOFError, OSError), socket.socket(fileno=mine) as link, link.makefile("rb") as requests:
        reading = _Reading(link, Record(record), *pickle.load(requests))  # noqa: S301 - of the process that started this one
        reading.send((os.getpid(), golden.version(), compiled))
        reading.serve(requests)
    for child in forked:
        os.waitpid(child, 0)
    os._exit(0)  # threads may be waiting for the store


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
