"""What the fault tests share: commands that can be struck, and a table of what was injected, printed at the end."""

from collections.abc import Callable, Iterator

import pytest

from tests.faults.driver import Driver, driving
from tests.faults.table import Row, table

ROWS = pytest.StashKey[list[Row]]()


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    with driving() as made:
        yield made


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[Row], None]:
    """Puts a row into the table."""
    return request.config.stash.setdefault(ROWS, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(ROWS, [])
    if rows:
        terminalreporter.write_line("\n".join(["", *table(rows)]))
