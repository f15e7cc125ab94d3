"""What the fault tests share: commands that can be struck, and a table of what was injected, printed at the end."""

from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest

from tests.support.command import Neardup
from tests.support.faults.bed import configuration, over_s3, served_samples
from tests.support.faults.command_driver import Driver, driving
from tests.support.faults.fault_proxy import Proxy
from tests.support.faults.fault_table import FAULT, Agree, Row, State, compared


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    with driving() as made:
        yield made


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    """The samples over S3, and what can go wrong with that."""
    with served_samples() as made:
        yield made


@pytest.fixture
def served(proxy: Proxy, make_neardup: Callable[[str], Neardup]) -> Neardup:
    """The command on the samples behind the proxy."""
    return over_s3(make_neardup(configuration(proxy.endpoint)))


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Callable[[Row], None]:
    """Puts a row into the table."""
    return lambda row: record_property(FAULT, asdict(row))


@pytest.fixture
def agree(tell: Callable[[Row], None]) -> Agree:
    """Compares what a fault has left with what would be without it, and puts it into the table."""

    def compare(fault: str, injected: int, in_flight: int, mine: State, theirs: State) -> None:
        assert mine == theirs
        tell(compared(fault, injected, in_flight, mine, theirs))

    return compare
