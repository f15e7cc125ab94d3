"""[serve]: the check before publication, over HTTP."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from neardup.config.address import Address
from neardup.config.section import Section
from neardup.option_values import DEFAULT_LISTEN


class Serve(Section, frozen=True, kw_only=True):
    """[serve]: where the HTTP service listens, whom it answers, and how much it takes on."""

    listen: Annotated[
        Address | None,
        Meta(
            description="`HOST:PORT` of the HTTP service. If it is set, `neardup run` serves there as well. Unset, "
            f"`neardup serve` listens on `{DEFAULT_LISTEN}`."
        ),
    ] = None
    tokens: Annotated[
        Path | None,
        Meta(
            description="File of the tokens that requests must bring, made by `neardup serve --new-token NAME`. "
            "Without it the service answers every request, and listens on this machine only."
        ),
    ] = None
    deadline_seconds: Annotated[
        float,
        Meta(gt=0, le=60, description="Seconds after which a check answers with what it has, marked as estimated."),
    ] = 3
    max_body_bytes: Annotated[
        int, Meta(gt=0, description="A request with a larger body is refused with status 413.")
    ] = 8_000_000
    queue: Annotated[
        int,
        Meta(
            gt=0,
            le=10_000,
            description="Largest number of requests that wait for their turn. Further ones are refused with status "
            "429.",
        ),
    ] = 64
