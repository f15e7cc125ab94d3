"""Fixtures that every room shares: servers, the samples, and the command as a process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import settings

from tests.support.faults.table import FAULT, Row, table
from tests.support.servers import Aws, moto_server, redis_cluster, redis_server

settings.register_profile("untimed", deadline=None)  # a busy machine is no defect
settings.load_profile("untimed")

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "daemon" / "neardup" / "samples"


@pytest.fixture(scope="session")
def redis_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as url:
        yield url


@pytest.fixture
def redis_url(redis_alone: str) -> str:
    """An empty Redis."""
    with redis.Redis.from_url(redis_alone) as client:
        client.flushall()
    return redis_alone


@pytest.fixture(scope="session")
def cluster_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_cluster(tmp_path_factory.mktemp("cluster")) as url:
        yield url


@pytest.fixture
def cluster_url(cluster_alone: str) -> str:
    """An empty cluster of one."""
    with redis.Redis.from_url(cluster_alone) as client:
        client.flushall()
    return cluster_alone


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    """A moto server, with credentials for it in the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with moto_server() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_ATHENA", server.endpoint)
        yield server


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The list on the last line of its output."""
        return list(json.loads(self.out.splitlines()[-1]))

    @property
    def facts(self) -> dict[str, Any]:
        """The object on the last line of its output."""
        return dict(json.loads(self.out.splitlines()[-1]))


@dataclass(frozen=True)
class Neardup:
    """The command, run as processes in a folder of its own, on the samples unless told otherwise."""

    folder: Path
    env: dict[str, str]

    def __call__(self, *arguments: str, config: Path | None = None, **env: str) -> Ended:
        command = self.command(*arguments, config=config)
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, env=self.env | env, timeout=300, check=False
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def command(self, *arguments: str, config: Path | None = None) -> list[str]:
        path = config or self.folder / "config.toml"
        return [sys.executable, "-W", "error", "-m", "neardup.cli", "--config", str(path), *arguments]

    @property
    def ledger(self) -> Path:
        return self.folder / "neardup.db"

    def configure(self, text: str) -> None:
        (self.folder / "config.toml").write_text(text, encoding="utf-8")

    def pairs(self) -> set[tuple[int, int, str, int]]:
        """The open flags: story, match, kind, Hamming distance."""
        done = self("export", "--format", "jsonl")
        assert done.code == 0, done.err
        rows = [json.loads(line) for line in done.out.split("\n")[:-1]]
        return {(row["story_id"], row["matched_id"], row["kind"], row["hamming"]) for row in rows}


EMBEDDED = """
[source]
manifest = "{manifest}"
[content]
url = "file:{stories}"
"""
COMMON = """
[extract]
body = "article .story, div.post-body"
strip = [".share", ".author-note"]
[index]
url = "{index}"
[ledger]
path = "neardup.db"
[metrics]
listen = "127.0.0.1:0"
"""


def embedded(
    manifest: Path = SAMPLES / "manifest.csv", stories: Path = SAMPLES / "stories", index: str = "sqlite:"
) -> str:
    """A configuration over files."""
    return (EMBEDDED + COMMON).format(manifest=manifest, stories=stories, index=index)


@pytest.fixture
def make_neardup(tmp_path: Path) -> Callable[[str], Neardup]:
    """A command of its own for a configuration."""

    def make(config: str, name: str = "neardup") -> Neardup:
        folder = tmp_path / name
        folder.mkdir()
        made = Neardup(folder, {k: v for k, v in os.environ.items() if not k.startswith("NEARDUP_")})
        made.configure(config)
        return made

    return make


@pytest.fixture
def neardup(make_neardup: Callable[[str], Neardup]) -> Neardup:
    """The command on the samples, embedded."""
    return make_neardup(embedded())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The table of faults; here, for with workers only this file is read where it is printed."""
    passed = terminalreporter.stats.get("passed", [])
    rows = [Row(**facts) for report in passed for name, facts in report.user_properties if name == FAULT]
    if rows:
        terminalreporter.write_line("\n".join(["", *table(rows)]))
