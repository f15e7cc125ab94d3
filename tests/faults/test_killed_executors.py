"""Law: a job on Spark, one of whose executors is killed in the middle of each stage, writes what it writes undisturbed.

It takes minutes of CPU time, so it runs only in `make chaos`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Neardup, embedded
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.faults.killed_executors import spark_with_kills
from tests.support.sampling import CHAOS

FOLDERS = ("fingerprints", "flags", "clusters", "stories", "counts")
STAGES = {"fingerprints", "flags", "_work/read", "_work/prints", "_work/passages", "_work/assessed"}


def rows_of(folder: Path) -> list[str]:
    from pyarrow import dataset  # type: ignore[import-untyped]  # noqa: PLC0415 - it loads pandas, in each worker

    rows: list[dict[str, Any]] = dataset.dataset(folder).to_table().to_pylist()
    return sorted(repr(row | {"flagged_at": None}) for row in rows)


@pytest.mark.skipif(CHAOS == 1, reason="executors are killed in `make chaos`")
def test_a_job_whose_executors_are_killed_writes_the_same(
    neardup: Neardup, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    neardup.configure(embedded())
    outputs = [tmp_path / "undisturbed", tmp_path / "disturbed"]
    for output in outputs:
        output.mkdir()
    spark_with_kills(neardup, outputs[0], kills=False)
    killed, log = spark_with_kills(neardup, outputs[1], kills=True)
    assert set(killed) >= STAGES, f"no executor was killed in {STAGES - set(killed)}"
    for name in FOLDERS:
        expected, actual = (rows_of(output / "out" / name) for output in outputs)
        assert actual == expected, f"{name} differs after executors were killed"
    lost = len(rows_of(outputs[0] / "out" / "fingerprints")) - len(rows_of(outputs[1] / "out" / "fingerprints"))
    said = Said("Lost executor", log.count("Lost executor"))
    record_row(make_row("Spark: SIGKILL of an executor", len(killed), said, lost=lost))
