"""[serve]: the check before publication, over HTTP."""

from pathlib import Path

from neardup.config.address import Address
from neardup.config.section import Section, setting
from neardup.option_values import DEFAULT_LISTEN


class Serve(Section):
    """[serve]: where the HTTP service listens, whom it answers, and how much it takes on."""

    listen: Address | None = setting(
        default=None,
        description="`HOST:PORT` of the HTTP service. If it is set, `neardup run` serves there as well. Unset, "
        f"`neardup serve` listens on `{DEFAULT_LISTEN}`.",
    )
    tokens: Path | None = setting(
        default=None,
        description="File of the tokens that requests must bring, made by `neardup serve --new-token NAME`. Without "
        "it the service answers every request, and listens on this machine only.",
    )
    deadline_seconds: float = setting(
        default=3,
        gt=0,
        le=60,
        description="Seconds after which a check answers with what it has, marked as estimated.",
    )
    max_body_bytes: int = setting(
        default=8_000_000, gt=0, description="A request with a larger body is refused with status 413."
    )
    queue: int = setting(
        default=64,
        gt=0,
        le=10_000,
        description="Largest number of requests that wait for their turn. Further ones are refused with status 429.",
    )
