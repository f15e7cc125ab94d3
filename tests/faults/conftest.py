"""What the fault tests share: commands that can be struck, and a table of what was injected, printed at the end."""

from collections.abc import Callable, Iterator
from dataclasses import asdict

import pytest

from tests.faults.driver import Driver, driving
from tests.faults.table import FAULT, Agree, Row, State, compared


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    with driving() as made:
        yield made


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
