"""Many GETs at a time, by one thread: libcurl's multi interface, upon epoll."""

import math
import select
import time
from collections import deque

import pycurl

from neardup.pages.local import File
from neardup.pages.s3 import Get

READABLE = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR


class Transfers:
    """GETs under way, beside a socket that may become readable."""

    def __init__(self, beside: int) -> None:
        self._beside = beside
        self._poll = select.epoll()
        self._poll.register(beside, select.EPOLLIN)
        self._watched: set[int] = set()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._wait_at_most)
        self._due = math.inf  # when libcurl wants to be asked what has timed out
        self._performed: dict[pycurl.Curl, Get] = {}
        self._ended: deque[Get | File] = deque()

    @property
    def under_way(self) -> int:
        """GETs that were begun and not yet given back."""
        return len(self._performed) + len(self._ended)

    @property
    def held(self) -> int:
        """The bytes of bodies that are here."""
        return sum(get.size for get in self._performed.values()) + sum(get.size for get in self._ended)

    def begin(self, get: Get | File) -> None:
        """Have a GET performed among the others."""
        if get.curl is None:
            self._ended.append(get)
        else:
            self._performed[get.curl] = get
            self._multi.add_handle(get.curl)

    def pop_finished(self) -> Get | File | None:
        """One that has its answer, or failed."""
        return self._ended.popleft() if self._ended else None

    def advance(self, *, wait: bool) -> bool:
        """Take what has come; with `wait`, wait for it unless a GET has ended.  Whether the socket is readable."""
        seconds = max(self._due - time.monotonic(), 0) if wait and not self._ended else 0
        readable = False
        for descriptor, event in self._poll.poll(None if seconds == math.inf else seconds):
            if descriptor == self._beside:
                readable = True
            else:
                self._multi.socket_action(descriptor, _for_curl(event))
        if self._due <= time.monotonic():
            self._due = math.inf
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()
        return readable

    def _collect(self) -> None:
        left = 1
        while left:
            left, done, failed = self._multi.info_read()
            for curl, number, said in [*((curl, 0, "") for curl in done), *failed]:
                self._multi.remove_handle(curl)
                get = self._performed.pop(curl)
                get.failure = (number, said) if number else None
                self._ended.append(get)

    def _watch(self, what: int, descriptor: int, _multi: pycurl.CurlMulti, _assigned: object) -> None:
        """Heed which events of a socket libcurl wants to be told of."""
        if what == pycurl.POLL_REMOVE:
            self._watched.discard(descriptor)
            self._poll.unregister(descriptor)
            return
        events = (what & pycurl.POLL_IN and select.EPOLLIN) | (what & pycurl.POLL_OUT and select.EPOLLOUT)
        if descriptor in self._watched:
            self._poll.modify(descriptor, events)
        else:
            self._watched.add(descriptor)
            self._poll.register(descriptor, events)

    def _wait_at_most(self, milliseconds: int) -> None:
        self._due = math.inf if milliseconds < 0 else time.monotonic() + milliseconds / 1000


def _for_curl(event: int) -> int:
    read = event & READABLE and pycurl.CSELECT_IN
    return int(read | (event & select.EPOLLOUT and pycurl.CSELECT_OUT))
