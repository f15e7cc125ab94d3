"""[metrics]: where Prometheus finds the daemon."""

from typing import Annotated

from msgspec import Meta

from neardup.config.address import Address
from neardup.config.section import Section


class Metrics(Section, frozen=True, kw_only=True):
    """[metrics]: where `/metrics` and `/healthz` are served."""

    listen: Annotated[
        Address,
        Meta(
            description="`HOST:PORT` where the daemon serves `/metrics` and `/healthz`. `backfill`, `daily`, `retry` "
            "and `sweep` serve `/metrics` there, if the port is free."
        ),
    ] = "127.0.0.1:9108"
