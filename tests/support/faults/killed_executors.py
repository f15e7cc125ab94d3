"""Runs `neardup spark` on executors that are processes, and kills one of them in the middle of each stage."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.support.command import Neardup
from tests.support.resource_meter import descendants

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
