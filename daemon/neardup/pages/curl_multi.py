"""Many GETs at a time in one thread: libcurl's multi interface on epoll."""

import math
import select
import time
from collections import deque
from itertools import chain
from operator import attrgetter

import pycurl

from neardup.pages.local import File, Given
from neardup.pages.s3 import Get

BODY_BYTES = attrgetter("body_bytes")
READABLE = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR


class Transfers:
    """GETs under way; it also watches a control socket, and reports when that becomes readable."""

    def __init__(self, control_socket: int) -> None:
        self._control_socket = control_socket
        self._poll = select.epoll()
        self._poll.register(control_socket, select.EPOLLIN)
        self._watched: set[int] = set()
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._watch)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._set_timer)
        self._due = math.inf  # when libcurl wants to be called for its time-outs
        self._active: dict[pycurl.Curl, Get] = {}
        self._finished: deque[Get | File | Given] = deque()

    @property
    def under_way(self) -> int:
        """The number of GETs begun and not yet popped."""
        return len(self._active) + len(self._finished)

    @property
    def body_bytes(self) -> int:
        """The bytes of bodies received for them, complete or not."""
        total: int = sum(map(BODY_BYTES, chain(self._active.values(), self._finished)))
        return total

    def begin(self, get: Get | File | Given) -> None:
        """Begin a GET."""
        if get.curl is None:
            self._finished.append(get)
        else:
            self._active[get.curl] = get
            self._multi.add_handle(get.curl)

    def pop_finished(self) -> Get | File | Given | None:
        """A GET that has its response or has failed, or None."""
        return self._finished.popleft() if self._finished else None

    def advance(self, *, wait: bool) -> bool:
        """Process what has arrived; with `wait`, block until something does, unless a GET has finished.

        Returns whether the control socket is readable.
        """
        seconds = max(self._due - time.monotonic(), 0) if wait and not self._finished else 0
        readable = False
        for descriptor, event in self._poll.poll(None if seconds == math.inf else seconds):
            if descriptor == self._control_socket:
                readable = True
            else:
                self._multi.socket_action(descriptor, _curl_events(event))
        if self._due <= time.monotonic():
            self._due = math.inf
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()
        return readable

    def _collect(self) -> None:
        queued = 1
        while queued:
            queued, done, failed = self._multi.info_read()
            for curl, number, message in [*((curl, 0, "") for curl in done), *failed]:
                self._multi.remove_handle(curl)
                get = self._active.pop(curl)
                get.failure = (number, message) if number else None
                self._finished.append(get)

    def _watch(self, action: int, descriptor: int, _multi: pycurl.CurlMulti, _assigned: object) -> None:
        """Called by libcurl: the events of a socket that it waits for."""
        if action == pycurl.POLL_REMOVE:
            self._watched.discard(descriptor)
            self._poll.unregister(descriptor)
            return
        events = (action & pycurl.POLL_IN and select.EPOLLIN) | (action & pycurl.POLL_OUT and select.EPOLLOUT)
        if descriptor in self._watched:
            self._poll.modify(descriptor, events)
        else:
            self._watched.add(descriptor)
            self._poll.register(descriptor, events)

    def _set_timer(self, milliseconds: int) -> None:
        """Called by libcurl: when it wants to be called for its time-outs."""
        self._due = math.inf if milliseconds < 0 else time.monotonic() + milliseconds / 1000


def _curl_events(event: int) -> int:
    read = event & READABLE and pycurl.CSELECT_IN
    return int(read | (event & select.EPOLLOUT and pycurl.CSELECT_OUT))
