"""The HOST:PORT addresses that the daemon listens on."""

from ipaddress import ip_address
from typing import Annotated

from pydantic import BeforeValidator


def address(value: object) -> str:
    """Return HOST:PORT unchanged.  Raises ValueError for anything else."""
    host, _, port = str(value).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"not HOST:PORT: {value!r}")
    return str(value)


def is_loopback(host: str) -> bool:
    """Whether HOST is reachable from this machine only.  HOST is a name or an address, IPv6 in brackets."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


Address = Annotated[str, BeforeValidator(address)]
