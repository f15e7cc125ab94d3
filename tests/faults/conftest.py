"""Fixtures of the fault tests: commands that can be killed, a faulty object store, and the rows of the fault table."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec.structs import asdict

from tests.support.command import Neardup
from tests.support.faults.bed import configuration, over_s3, served_samples
from tests.support.faults.command_driver import Driver, command_driver
from tests.support.faults.fault_proxy import Proxy
from tests.support.faults.fault_table import FAULT, AssertSameState, Row, Said, State, compared
from tests.support.faults.hostile_pages import poisoned_samples


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    with command_driver() as driver:
        yield driver


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    """The samples over S3, behind a proxy that injects faults."""
    with served_samples() as proxy:
        yield proxy


@pytest.fixture
def served(proxy: Proxy, make_neardup: Callable[[str], Neardup]) -> Neardup:
    """The command on the samples behind the proxy."""
    return over_s3(make_neardup(configuration(proxy.endpoint)))


@pytest.fixture
def poisoned(make_neardup: Callable[[str], Neardup], tmp_path: Path) -> Callable[[str], Neardup]:
    """The command on the samples; one page has a given effect on the process that parses it."""
    return lambda effect: poisoned_samples(make_neardup, tmp_path, effect)


@pytest.fixture
def record_row(record_property: Callable[[str, object], None]) -> Callable[[Row], None]:
    """Adds a row to the fault table.  Something is said of every fault."""

    def record(row: Row) -> None:
        assert row.silent == 0, f"{row.scenario}: of {row.silent} of {row.injected} faults there is no {row.said!r}"
        record_property(FAULT, asdict(row))

    return record


@pytest.fixture
def assert_same_state(record_row: Callable[[Row], None]) -> AssertSameState:
    """Compares the state after a fault with the undisturbed one, and adds a row to the fault table."""

    def compare(scenario: str, injected: int, in_flight: int, actual: State, expected: State, *, said: Said) -> None:
        assert actual == expected
        record_row(compared(scenario, injected, in_flight, actual, expected, said=said))

    return compare
