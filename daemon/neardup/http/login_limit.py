"""A limit on wrong tokens: each client address waits longer after each one, and the log gets one line a minute."""

import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil

from cachetools import TTLCache
from msgspec import Struct

from neardup.telemetry.log import log

FREE_ATTEMPTS = 5  # without a wait, for people who mistype
FIRST_WAIT_SECONDS = 2.0  # after them; each further wrong token doubles it
LONGEST_WAIT_SECONDS = 900.0
FORGOTTEN_AFTER_SECONDS = 3_600
MOST_CLIENTS = 10_000  # remembered at a time
LOG_EVERY_SECONDS = 60.0


class _Failures(Struct, frozen=True):
    """The wrong tokens of a client so far, and when it may try again."""

    count: int
    next_at: float


class LoginLimit:
    """Counts wrong tokens by client; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: TTLCache[str, _Failures] = TTLCache(MOST_CLIENTS, FORGOTTEN_AFTER_SECONDS, clock)
        self._refused = 0  # since the last log line
        self._last_logged = float("-inf")

    def wait_seconds(self, address: str) -> int:
        """How long a client must wait before its next attempt counts; 0 if it need not wait."""
        failures = self._failures.get(_find_client(address))
        return 0 if failures is None else max(ceil(failures.next_at - self._clock()), 0)

    def refuse(self, address: str, *, wrong: bool) -> None:
        """Record a refused attempt; `wrong` if its token was compared, and not refused because of the wait."""
        now, client = self._clock(), _find_client(address)
        if wrong:
            failures = self._failures.get(client)
            count = failures.count + 1 if failures else 1
            doublings = count - FREE_ATTEMPTS
            wait = min(FIRST_WAIT_SECONDS * 2 ** min(doublings, 30), LONGEST_WAIT_SECONDS) if doublings >= 0 else 0
            self._failures[client] = _Failures(count, now + wait)
        self._refused += 1
        if now - self._last_logged >= LOG_EVERY_SECONDS:
            log.warning("a login was refused", remote=client, attempts=self._refused)
            self._refused, self._last_logged = 0, now

    def accept(self, address: str) -> None:
        """Forget the wrong tokens of a client that gave the right one."""
        self._failures.pop(_find_client(address), None)


def _find_client(address: str) -> str:
    """An address as one client: of IPv6 its network of 64 bits, all of which one client may have."""
    try:
        known = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(known, IPv6Address):
        known = known.ipv4_mapped or known
    return str(ip_network((known, 64), strict=False)) if isinstance(known, IPv6Address) else str(known)
