"""A service over the samples, as a process that the tests of a worker share."""

from collections.abc import Iterator

import pytest

from tests.support.command import Neardup, embedded, environment
from tests.support.servers import free_port
from tests.support.service import serving

DEADLINE_SECONDS = "60"  # a busy machine must not fail a test


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a service whose ledger has the samples."""
    neardup = Neardup(tmp_path_factory.mktemp("served"), environment())
    neardup.configure(embedded())
    assert neardup("backfill").code == 0
    listen = f"127.0.0.1:{free_port()}"
    with serving(neardup, listen, NEARDUP_SERVE__DEADLINE_SECONDS=DEADLINE_SECONDS) as (_, systemd, _):
        systemd.wait_for("STATUS=serving")
        yield f"http://{listen}"
