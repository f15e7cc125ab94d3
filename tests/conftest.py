"""Fixtures that all test packages share: servers, the samples, and the command as a process."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from hypothesis import settings

from tests.support.command import Neardup, embedded
from tests.support.faults.fault_table import FAULT, Row, table
from tests.support.servers import Aws, moto_server, redis_cluster, redis_server

settings.register_profile("untimed", deadline=None)  # a slow machine must not fail a test
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def redis_url(shared_redis: str) -> str:
    """An empty Redis."""
    with redis.Redis.from_url(shared_redis) as client:
        client.flushall()
    return shared_redis


@pytest.fixture(scope="session")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture
def cluster_url(shared_cluster: str) -> str:
    """An empty cluster of one node."""
    with redis.Redis.from_url(shared_cluster) as client:
        client.flushall()
    return shared_cluster


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    """A moto server, with credentials for it in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with moto_server() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_ATHENA", server.endpoint)
        yield server


@pytest.fixture
def make_neardup(tmp_path: Path) -> Callable[[str], Neardup]:
    """Builds a command in its own folder for a configuration."""

    def make(config: str, name: str = "neardup") -> Neardup:
        folder = tmp_path / name
        folder.mkdir()
        neardup = Neardup(folder, {k: v for k, v in os.environ.items() if not k.startswith("NEARDUP_")})
        neardup.configure(config)
        return neardup

    return make


@pytest.fixture
def neardup(make_neardup: Callable[[str], Neardup]) -> Neardup:
    """The command on the samples, with the SQLite index."""
    return make_neardup(embedded())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the fault table; with xdist workers, the controlling process loads only this conftest."""
    passed = terminalreporter.stats.get("passed", [])
    rows = [Row(**facts) for report in passed for name, facts in report.user_properties if name == FAULT]
    if rows:
        terminalreporter.write_line("\n".join(["", *table(rows)]))
