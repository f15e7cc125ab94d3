"""[metrics]: where Prometheus finds the daemon."""

from neardup.config.address import Address
from neardup.config.section import Section, setting


class Metrics(Section):
    """[metrics]: where `/metrics` and `/healthz` are served."""

    listen: Address = setting(
        default="127.0.0.1:9108",
        description="`HOST:PORT` where the daemon serves `/metrics` and `/healthz`. `backfill`, `daily`, `retry` and "
        "`sweep` serve `/metrics` there, if the port is free.",
    )
