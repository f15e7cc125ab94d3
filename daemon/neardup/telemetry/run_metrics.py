"""/metrics of a single run.  The server of prometheus-client starts 0.2 s faster than the application of the daemon."""

from neardup.log import log
from neardup.telemetry.metrics import STARTED, registered


def serve_metrics(listen: str, command: str) -> None:
    """Serve /metrics on HOST:PORT, in a thread, until the process ends; an address that is taken is only a warning.

    Commands share the port with the daemon, and the alerts tell them apart by `command`.
    """
    from prometheus_client import start_http_server  # noqa: PLC0415 - loads slowly

    registered()
    STARTED.labels(command).set_to_current_time()
    host, _, port = listen.rpartition(":")
    try:
        start_http_server(int(port), host.strip("[]"))
    except OSError as error:
        log.warning("no /metrics for this run", why=f"metrics.listen: cannot listen on {listen}: {error.strerror}")
