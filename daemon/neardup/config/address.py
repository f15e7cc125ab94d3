"""The HOST:PORT addresses that the daemon listens on, and the URLs that it posts to."""

from typing import Annotated

from neardup.config.section import FromText, matching


def address(value: str) -> str:
    """Return HOST:PORT unchanged.  Raises ValueError for anything else."""
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"not HOST:PORT: {value!r}")
    return value


Address = Annotated[str, FromText(address)]
HttpUrl = Annotated[str, matching(r"(https?://[^/\s]\S*)?", "an http:// or https:// URL")]
