"""Law: a job on Spark, one of whose executors is killed in the middle of each stage, writes what it writes undisturbed.

It takes minutes of CPU time, so it runs only in `make chaos`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Neardup, embedded
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.resource_meter import descendants
from tests.support.sampling import CHAOS

MASTER = "local-cluster[2,1,1500]"  # two executors, one core and 1,500 MiB each
EXECUTOR = b"CoarseGrainedExecutorBackend"
CONF = "--conf spark.executor.memory=1000m --conf spark.driver.memory=700m --conf spark.sql.shuffle.partitions=4"
WATCHED_EVERY = 0.01  # seconds
BEGUN = "*/_temporary/*/*/*/part-*"  # a file that a task has begun to write below the folder of its stage


def spark_with_kills(neardup: Neardup, output: Path, *, kills: bool) -> tuple[list[str], str]:
    """Run a job, and kill an executor when the first task of each stage writes; returns the stages, and stderr."""
    import pyspark  # noqa: PLC0415 - only these tests load it

    home = Path(pyspark.__file__).parent
    settings = f"{CONF} --conf spark.ui.enabled=false --conf spark.ui.showConsoleProgress=false"
    settings += " --conf spark.driver.bindAddress=127.0.0.1 --conf spark.driver.host=127.0.0.1"
    env = {"SPARK_HOME": str(home), "PYSPARK_SUBMIT_ARGS": f"{settings} pyspark-shell", "SPARK_LOCAL_DIRS": str(output)}
    options = ["--config", str(neardup.folder / "config.toml"), "spark", "--master", MASTER]
    command = [sys.executable, "-m", "neardup", *options, "--output", str(output / "out")]
    with (output / "stderr").open("wb") as err:
        job = subprocess.Popen(command, cwd=neardup.folder, env=os.environ | neardup.env | env, stderr=err)
        killed = list[str]()
        while kills and not _has_ended(job):
            stages = {path.relative_to(output / "out").as_posix() for path in _begun(output / "out")}
            for stage in sorted(stages - set(killed)):
                if executor := next(_executors(job.pid), None):
                    os.kill(executor, signal.SIGKILL)
                    killed.append(stage)
        job.wait()
    assert job.returncode == 0, (output / "stderr").read_text(encoding="utf-8")[-3000:]
    return killed, (output / "stderr").read_text(encoding="utf-8")


def _has_ended(job: "subprocess.Popen[bytes]") -> bool:
    """Whether a job has ended WATCHED_EVERY seconds from now."""
    with suppress(subprocess.TimeoutExpired):
        job.wait(WATCHED_EVERY)
        return True
    return False


def _begun(output: Path) -> set[Path]:
    """The folders of stages that tasks are writing."""
    found = set[Path]()
    for folder in (output, output / "_work"):
        with suppress(FileNotFoundError):  # a task has ended meanwhile
            found |= {folder / path.relative_to(folder).parts[0] for path in folder.glob(BEGUN)}
    return found


def _executors(pid: int) -> Iterator[int]:
    for descendant in descendants(pid):
        with suppress(OSError):
            if EXECUTOR in Path(f"/proc/{descendant}/cmdline").read_bytes():
                yield int(descendant)


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
