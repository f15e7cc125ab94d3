"""[metrics]: where Prometheus finds the daemon."""

from pydantic import Field

from neardup.config.address import Address
from neardup.config.section import Section


class Metrics(Section):
    """[metrics]: where `/metrics` and `/healthz` are served."""

    listen: Address = Field(
        default="127.0.0.1:9108",
        description="`HOST:PORT` that serves `/metrics` and `/healthz`. `backfill`, `daily`, `retry` and `sweep` "
        "serve them too, if the port is free.",
    )
