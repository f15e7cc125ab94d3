"""systemd's notification protocol, sd_notify(3): datagrams of KEY=value lines to $NOTIFY_SOCKET."""

import os
import socket


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


def watchdog_seconds() -> float | None:
    """Seconds between two WATCHDOG=1: half of what systemd allows; None if it expects none."""
    microseconds = os.environ.get("WATCHDOG_USEC")
    if not microseconds or os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(microseconds) / 2_000_000
