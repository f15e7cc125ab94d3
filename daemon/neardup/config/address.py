"""The HOST:PORT addresses that the daemon listens on, and the URLs that it posts to."""

import re
from ipaddress import ip_address
from typing import Annotated

from neardup.config.section import FromText, matching

HOST_HEADER = re.compile(r"(\[[^\]]*\]|[^:]*)(?::\d+)?")


def address(value: str) -> str:
    """Return HOST:PORT unchanged.  Raises ValueError for anything else."""
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"not HOST:PORT: {value!r}")
    return value


def is_loopback(host: str) -> bool:
    """Whether HOST is reachable from this machine only.  HOST is a name or an address, IPv6 in brackets."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def named_host(header: str) -> str:
    """The host that a Host header names, without its port; "" if it names none."""
    host = HOST_HEADER.fullmatch(header)
    return host[1] if host else ""


Address = Annotated[str, FromText(address)]
HttpUrl = Annotated[str, matching(r"(https?://[^/\s]\S*)?", "an http:// or https:// URL")]
