"""A small soak: store, Redis and the process fail together, and nothing is lost."""

from collections.abc import Callable
from pathlib import Path

from tests.faults.soak import soak
from tests.support.faults.fault_table import Row


def test_nothing_is_lost_or_flagged_twice(tmp_path: Path, record_row: Callable[[Row], None]) -> None:
    soaked = soak(tmp_path, 1_500, kills=3, redis_every=1.0)
    assert soaked.wrong == []
    assert soaked.held == soaked.listed
    assert soaked.retried > 0, "no dead letter was retried"
    assert (soaked.kills, len(soaked.redis) > 1, len(soaked.store) > 4) == (3, True, True), soaked
    rows = soaked.rows()
    assert sum(row.lost + row.flagged_twice for row in rows) == 0
    assert 4 * rows[0].injected > sum(row.injected for row in rows), f"few faults are said: {rows}"
    for row in rows:
        record_row(row)
