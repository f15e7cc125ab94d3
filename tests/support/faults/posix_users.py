"""Runs commands as other users: the service's user, an operator in its group, an unrelated user.  Needs root."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.command import Ended, embedded
from tests.support.faults.small_disks import may_mount
from tests.support.paths import ROOT

GROUP = 64_000  # nobody's, as the users' numbers


@dataclass(frozen=True)
class Person:
    """A user, with a umask, who may be in the service's group."""

    number: int
    umask: int
    member: bool
    home: Path
    seeing: tuple[str, ...]  # what shows the program to those who could not reach it

    def command(self, *arguments: str, before: Sequence[str] = ()) -> list[str]:
        """A command as this user, without privileges; `before` is what runs it."""
        groups = f"--groups={GROUP}" if self.member else "--clear-groups"
        group = GROUP if self.number == DAEMON else self.number
        become = [
            "setpriv",
            f"--reuid={self.number}",
            f"--regid={group}",
            groups,
            "--no-new-privs",
            "--bounding-set=-all",
        ]
        shell = ["sh", "-c", f'umask {self.umask:04o}; exec "$@"', "sh"]
        return [*self.seeing, *become, *shell, *before, sys.executable, "-W", "error", "-m", "neardup.cli", *arguments]

    @property
    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
        return kept | {
            "HOME": str(self.home),
            "NUMBA_CACHE_DIR": str(self.home.parent / "cache"),
            "PYTHONPATH": str(ROOT),
        }

    def __call__(self, *arguments: str, before: Sequence[str] = ()) -> Ended:
        command = self.command(*arguments, before=before)
        done = subprocess.run(command, env=self.env, cwd="/", capture_output=True, text=True, timeout=300, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)


DAEMON, OPERATOR, STRANGER = 64_000, 64_001, 64_002


@dataclass(frozen=True)
class Box:
    """A box on which neardup is installed."""

    state: Path
    config: Path
    daemon: Person
    operator: Person
    stranger: Person

    def clear(self) -> None:
        """An empty state directory, as the units make it."""
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir()
        os.chown(self.state, DAEMON, GROUP)
        self.state.chmod(0o2770)


def shown(folder: Path) -> tuple[str, ...]:
    """A command that runs another where Python and program, were they in a closed home, can be reached by everybody."""
    needed = [Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT.resolve()]
    closed = {
        path: next((up for up in reversed(path.parents) if not up.stat().st_mode & 0o001), None) for path in needed
    }
    hidden = {path: up for path, up in closed.items() if up is not None}
    if not hidden:
        return ()
    steps = []
    for n, path in enumerate(hidden):
        (folder / str(n)).mkdir(parents=True)
        steps.append(f"mount --bind {path} {folder}/{n}")
    steps += [f"mount -t tmpfs -o mode=755 tmpfs {up}" for up in set(hidden.values())]
    steps += [f"mkdir -p {path}; mount --bind {folder}/{n} {path}" for n, path in enumerate(hidden)]
    return ("unshare", "--mount", "sh", "-ec", f'{"; ".join(steps)}; exec "$@"', "sh")


@contextmanager
def box() -> Iterator[Box]:
    """A box; the test is skipped where one cannot be others, or others cannot read the program."""
    if os.geteuid():
        pytest.skip("only root can be others")
    with tempfile.TemporaryDirectory(prefix="neardup-box-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        config, state = folder / "config.toml", folder / "state"
        config.write_text(embedded().replace('"neardup.db"', f'"{state}/neardup.db"'), encoding="utf-8")
        config.chmod(0o640)
        os.chown(config, 0, GROUP)
        people, seeing = [], shown(folder / "shown")
        for number, umask, member in ((DAEMON, 0o007, True), (OPERATOR, 0o022, True), (STRANGER, 0o022, False)):
            home = folder / str(number)
            home.mkdir()
            os.chown(home, number, GROUP if number == DAEMON else number)
            people.append(Person(number, umask, member, home, seeing))
        made = Box(state, config, *people)
        (folder / "cache").mkdir()
        (folder / "cache").chmod(0o777)
        ended = made.stranger("--version")
        if ended.code and not may_mount():
            pytest.skip("the program stands where others may not read, and to show it elsewhere takes CAP_SYS_ADMIN")
        assert ended.code == 0, f"others cannot run the program: {ended.err}"
        warm_up = made.stranger.command("status")
        warm_up[warm_up.index("-m") :] = ["-c", "from neardup.core.fingerprint.version import warm_up; warm_up()"]
        subprocess.run(warm_up, env=made.stranger.env, cwd="/", check=True)  # compiles, once for all
        yield made
