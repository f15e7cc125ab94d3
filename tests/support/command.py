"""Runs the command as a process, and builds configurations for it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from tests.support.forked_command import Command, ForkedProcess, run_forked
from tests.support.forked_readers import is_obeyed
from tests.support.paths import SAMPLES

PROGRAM = (sys.executable, "-W", "error", "-m", "neardup")
TIMEOUT_SECONDS = 300.0


def environment() -> dict[str, str]:
    """That of this process, without its settings of neardup and without canaries.

    These take longer after a daily run than the run over the samples.
    """
    return {k: v for k, v in os.environ.items() if not k.startswith("NEARDUP_")} | {"NEARDUP_RUN__CANARIES": "0"}


class Ended(Struct, frozen=True):
    """The exit code and the output of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The JSON list on the last line of the output."""
        return list(json.loads(self.out.splitlines()[-1]))

    @property
    def facts(self) -> dict[str, Any]:
        """The JSON object on the last line of the output."""
        return dict(json.loads(self.out.splitlines()[-1]))


class Neardup(Struct, frozen=True):
    """The command, run as a process in its own folder with the configuration config.toml of that folder.

    With `is_forked` it is forked from a process that has loaded the program, otherwise it is a new interpreter.
    """

    folder: Path
    env: dict[str, str]
    is_forked: bool = True

    def __call__(self, *arguments: str, config: Path | None = None, **env: str) -> Ended:
        command, env = self.command(*arguments, config=config), self.env | env
        if self.is_forked and is_obeyed(os.environ | env, os.environ):
            return Ended(*run_forked(Command(command[len(PROGRAM) :], str(self.folder), env), TIMEOUT_SECONDS))
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder, env=env, timeout=TIMEOUT_SECONDS, check=False
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(
        self, *arguments: str, env: Mapping[str, str], output: BinaryIO | None = None, errors: BinaryIO | None = None
    ) -> ForkedProcess:
        """Start the command without waiting for it.

        Its stdout is dropped unless there is a file for it; its stderr is a file, or else a pipe.
        """
        command = Command(self.command(*arguments)[len(PROGRAM) :], str(self.folder), {**self.env, **env})
        with Path(os.devnull).open("wb") as dropped:
            return ForkedProcess(command, output or dropped, errors)

    def command(self, *arguments: str, config: Path | None = None) -> list[str]:
        path = config or self.folder / "config.toml"
        return [*PROGRAM, "--config", str(path), *arguments]

    @property
    def ledger(self) -> Path:
        return self.folder / "neardup.db"

    def configure(self, text: str) -> None:
        (self.folder / "config.toml").write_text(text, encoding="utf-8")

    def flagged_pairs(self) -> set[tuple[int, int, str, int]]:
        """The open flags: story, match, kind and Hamming distance."""
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
    """A configuration that reads the manifest and the pages from files."""
    return (EMBEDDED + COMMON).format(manifest=manifest, stories=stories, index=index)


def assert_one_line(ended: Ended, code: int, *words: str) -> None:
    """The command ended with this exit code and one line on stderr that contains all the words.

    A run that had begun has logged its start before.
    """
    lines = [line for line in ended.err.strip().splitlines() if '"event": "run started"' not in line]
    assert ended.code == code, ended.err
    assert "Traceback" not in ended.err
    assert len(lines) == 1, f"expected one line, got {lines}"
    for word in words:
        assert word in lines[0], lines[0]
