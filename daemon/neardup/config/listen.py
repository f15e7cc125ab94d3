"""The sections of what is served: [metrics] and [review]."""

from ipaddress import ip_address
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, SecretStr

LEAST_TOKEN = 16  # characters


class Section(BaseModel):
    """A table of config.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def address(value: object) -> str:
    """HOST:PORT as it is.  Raises ValueError for what is none."""
    host, _, port = str(value).rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise ValueError(f"not HOST:PORT: {value!r}")
    return str(value)


def _token(value: object) -> object:
    said = str(value)
    if said and (len(said) < LEAST_TOKEN or not said.isprintable()):
        raise ValueError(f"fewer than {LEAST_TOKEN} printable characters")
    return value


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach HOST, a name or an address, IPv6 in brackets."""
    try:
        return host == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


Address = Annotated[str, BeforeValidator(address)]


class Metrics(Section):
    """[metrics]: where /metrics and /healthz are served."""

    listen: Address = "127.0.0.1:9108"


class Review(Section):
    """[review]: where the review desk is served, and what opens it to other machines."""

    listen: Address = "127.0.0.1:8765"
    token: Annotated[SecretStr, BeforeValidator(_token)] = SecretStr("")
