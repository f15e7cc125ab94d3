"""Fixtures that all test packages share: servers, the samples, and the command as a process."""

import gc
import resource
import shutil
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, flock
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import redis
import structlog
from hypothesis import settings
from neardup.core import native
from xdist.scheduler import LoadScopeScheduling

from tests.support.command import Neardup, embedded, environment
from tests.support.faults.fault_table import FAULT, Row, table
from tests.support.sampling import EXAMPLES
from tests.support.servers import PROGRAMS, Aws, moto_server, redis_cluster, redis_server

if TYPE_CHECKING:
    from tests.support.checked_ledger import CheckedLedger

# A slow machine must not fail a test.  Every run draws other examples, so that a law is tried more often than in one.
settings.register_profile("untimed", deadline=None, max_examples=EXAMPLES)
settings.load_profile("untimed")


DEFAULT_INTSET_ENTRIES = 512  # of a Redis
MOST_FILES = 65_536  # that a worker may have open, with all the servers, ledgers and processes of its tests
FILES_AT_MOST = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(MOST_FILES, FILES_AT_MOST), FILES_AT_MOST))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A law of the native core compares it with its references, so it says nothing where no compiler could build it."""
    if native.WHY_MISSING is not None and item.get_closest_marker("native") is not None:
        assert shutil.which("gcc") is None, f"there is a compiler, but {native.WHY_MISSING}"
        pytest.skip(native.WHY_MISSING)


# The rooms whose tests share what takes long to start: a JVM, a browser, a service.
ONE_WORKER = ("tests/spark/", "tests/moderation/browser/", "tests/serve/")
# Begun first and in this order, so that no worker is left with one of them while the others have nothing to do.
LONGEST = (
    "tests/spark/",
    "tests/native/",
    "tests/moderation/browser/",
    "tests/faults/test_hostile.py",
    "tests/faults/test_soak.py",
    "tests/serve/",
    "tests/faults/",
    "tests/system/",
    "tests/index/",
    "tests/pipeline/",
    "tests/moderation/",
)


class RoomScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives a worker whole files, or the whole of a room whose tests share fixtures."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return next((room for room in ONE_WORKER if path.startswith(room)), path)


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> RoomScheduling:
    """Distribute the tests of `-n`."""
    return RoomScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let one worker collect before the others, which load what it has compiled.

    The garbage collector passes over the tests and what they import, which is kept until the end.
    """
    with Path(__file__).open("rb") as lock:
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            flock(lock, LOCK_SH)
        gc.disable()
        collected = yield
        gc.freeze()
        gc.enable()
    return collected


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest rooms and files."""
    items.sort(
        key=lambda item: next((n for n, path in enumerate(LONGEST) if item.nodeid.startswith(path)), len(LONGEST))
    )


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """A command that runs in this process logs to a stream that is closed with its test."""
    configured = structlog.get_config()
    yield
    structlog.configure(**configured)


@pytest.fixture(scope="session")
def shared_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """The URL of the server of one of the PROGRAMS, which starts when it is first asked for."""
    with ExitStack() as stack:
        yield cache(lambda name: stack.enter_context(redis_server(tmp_path_factory.mktemp(name), program=name)))


@pytest.fixture
def empty_server(shared_servers: Callable[[str], str]) -> Callable[[str], str]:
    """The URL of an empty server of one of the PROGRAMS."""

    def emptied(program: str) -> str:
        with redis.Redis.from_url(shared_servers(program)) as client:
            client.flushall()
            client.config_set("set-max-intset-entries", DEFAULT_INTSET_ENTRIES)  # a test before may have raised it
        return shared_servers(program)

    return emptied


@pytest.fixture(params=PROGRAMS)
def redis_program(request: pytest.FixtureRequest) -> str:
    """A test that uses this runs with Redis and with Valkey."""
    return str(request.param)


@pytest.fixture
def redis_url(empty_server: Callable[[str], str]) -> str:
    """An empty Redis."""
    return empty_server("redis")


@pytest.fixture
def redis_or_valkey_url(empty_server: Callable[[str], str], redis_program: str) -> str:
    """An empty Redis, and an empty Valkey."""
    return empty_server(redis_program)


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator["CheckedLedger"]:
    """A ledger that is checked and takes submissions."""
    from tests.support.checked_ledger import checked_ledger  # noqa: PLC0415 - it loads most of the program

    async with checked_ledger(tmp_path) as made:
        yield made


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


@pytest.fixture(scope="session")
def shared_aws() -> Iterator[Aws]:
    from botocore import session  # noqa: PLC0415 - it takes long to load, and few tests need it

    with pytest.MonkeyPatch.context() as patch, moto_server() as server:
        patch.setattr(session, "create_loader", cache(session.create_loader))  # else each client parses its API again
        yield server


@pytest.fixture
def aws(shared_aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """An empty moto server, with credentials for it in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_ENDPOINT_URL_ATHENA", shared_aws.endpoint)
    shared_aws.post("reset")
    return shared_aws


@pytest.fixture
def make_neardup(tmp_path: Path) -> Callable[[str], Neardup]:
    """Builds a command in its own folder for a configuration."""

    def make(config: str, name: str = "neardup") -> Neardup:
        folder = tmp_path / name
        folder.mkdir()
        neardup = Neardup(folder, environment())
        neardup.configure(config)
        return neardup

    return make


@pytest.fixture
def neardup(make_neardup: Callable[[str], Neardup]) -> Neardup:
    """The command on the samples, with the SQLite index."""
    return make_neardup(embedded())


@pytest.fixture(scope="session")
def backfilled_samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a command after a backfill of the samples, which no test changes."""
    neardup = Neardup(tmp_path_factory.mktemp("backfilled"), environment())
    neardup.configure(embedded())
    done = neardup("backfill")
    assert done.code == 0, done.err
    return neardup.folder


@pytest.fixture
def flagged(neardup: Neardup, backfilled_samples: Path) -> Neardup:
    """The command on the samples, after a backfill."""
    shutil.copytree(backfilled_samples, neardup.folder, dirs_exist_ok=True)
    return neardup


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the fault table; with xdist workers, the controlling process loads only this conftest."""
    passed = terminalreporter.stats.get("passed", [])
    rows = [Row(**facts) for report in passed for name, facts in report.user_properties if name == FAULT]
    if rows:
        terminalreporter.write_line("\n".join(["", *table(rows)]))
