"""systemd's notification protocol, sd_notify(3): datagrams of KEY=value lines to $NOTIFY_SOCKET."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


def notify(*lines: str) -> None:
    """Send systemd lines such as `notify("READY=1", "STATUS=idle")`; without $NOTIFY_SOCKET, do nothing."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
        try:
            sock.sendto("\n".join(lines).encode(), address)
        except OSError:
            return  # systemd does not listen, and neardup works without it


def find_watchdog_seconds() -> float | None:
    """Seconds between two WATCHDOG=1: half of what systemd allows; None if it expects none."""
    microseconds = os.environ.get("WATCHDOG_USEC")
    if not microseconds or os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(microseconds) / 2_000_000


@asynccontextmanager
async def notifying_watchdog() -> AsyncIterator[None]:
    """Notify systemd's watchdog while the context lasts, if systemd expects that."""

    async def notify_again() -> None:
        interval = find_watchdog_seconds()
        while interval is not None:
            notify("WATCHDOG=1")
            await asyncio.sleep(interval)

    task = asyncio.create_task(notify_again(), name="watchdog")
    try:
        yield
    finally:
        task.cancel()
