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
    assert (len(soaked.killed), len(soaked.redis) > 1, len(soaked.store) > 4) == (3, True, True), soaked
    assert soaked.unsaid == []
    assert soaked.row.lost == soaked.row.flagged_twice == 0
    record_row(soaked.row)
