"""Runs commands as other users: the service's user, an operator in its group, and an outsider; and lists the system
calls that the SystemCallFilter of a unit forbids.  Needs root.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct

from tests.support.command import Ended, embedded, environment
from tests.support.faults.small_disks import may_mount
from tests.support.paths import ROOT

GROUP = 64_000  # an unused id, as those of the users


class User(Struct, frozen=True):
    """A user with a umask; `member` says whether they belong to the service's group."""

    number: int
    umask: int
    member: bool
    home: Path
    mount_command: tuple[str, ...]  # makes the program readable for users who cannot reach its folder

    def command(self, *arguments: str, before: Sequence[str] = ()) -> list[str]:
        """A command that runs neardup as this user, without privileges; `before` is a command to run it under."""
        groups = f"--groups={GROUP}" if self.member else "--clear-groups"
        group = GROUP if self.number == DAEMON else self.number
        change_user = [
            "setpriv",
            f"--reuid={self.number}",
            f"--regid={group}",
            groups,
            "--no-new-privs",
            "--bounding-set=-all",
        ]
        shell = ["sh", "-c", f'umask {self.umask:04o}; exec "$@"', "sh"]
        return [
            *self.mount_command,
            *change_user,
            *shell,
            *before,
            sys.executable,
            "-W",
            "error",
            "-m",
            "neardup",
            *arguments,
        ]

    @property
    def env(self) -> dict[str, str]:
        return environment() | {"HOME": str(self.home), "PYTHONPATH": str(ROOT)}

    def __call__(self, *arguments: str, before: Sequence[str] = ()) -> Ended:
        command = self.command(*arguments, before=before)
        done = subprocess.run(command, env=self.env, cwd="/", capture_output=True, text=True, timeout=300, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)


DAEMON, OPERATOR, OUTSIDER = 64_000, 64_001, 64_002


class Installation(Struct, frozen=True):
    """A machine on which neardup is installed, with its users."""

    state: Path
    config: Path
    daemon: User
    operator: User
    outsider: User

    def clear(self) -> None:
        """Make the state directory empty, with the owner and mode that the units give it."""
        shutil.rmtree(self.state, ignore_errors=True)
        self.state.mkdir()
        os.chown(self.state, DAEMON, GROUP)
        self.state.chmod(0o2770)

    def fill(self) -> None:
        """Make the state directory as a backfill of the samples by the daemon leaves it."""
        held = self.state.parent / "held"
        if not held.exists():
            self.clear()
            assert self.daemon("--config", str(self.config), "backfill").code == 0
            subprocess.run(["cp", "-a", str(self.state), str(held)], check=True)
        shutil.rmtree(self.state)
        subprocess.run(["cp", "-a", str(held), str(self.state)], check=True)


def mount_program(folder: Path) -> tuple[str, ...]:
    """A command that runs another in a mount namespace in which all users can reach Python and the program.

    Empty if they can be reached anyway, that is, if no folder above them is closed to others.
    """
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
def installation() -> Iterator[Installation]:
    """An installation; the test is skipped without root, or if other users cannot read the program."""
    if os.geteuid():
        pytest.skip("only root can run commands as other users")
    with tempfile.TemporaryDirectory(prefix="neardup-users-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        config, state = folder / "config.toml", folder / "state"
        config.write_text(embedded().replace('"neardup.db"', f'"{state}/neardup.db"'), encoding="utf-8")
        config.chmod(0o640)
        os.chown(config, 0, GROUP)
        users, mount_command = [], mount_program(folder / "shown")
        for number, umask, member in ((DAEMON, 0o007, True), (OPERATOR, 0o022, True), (OUTSIDER, 0o022, False)):
            home = folder / str(number)
            home.mkdir()
            os.chown(home, number, GROUP if number == DAEMON else number)
            users.append(User(number, umask, member, home, mount_command))
        installed = Installation(state, config, *users)
        ended = installed.outsider("--version")
        if ended.code and not may_mount():
            pytest.skip("other users cannot read the program, and mounting it elsewhere takes CAP_SYS_ADMIN")
        assert ended.code == 0, f"other users cannot run the program: {ended.err}"
        yield installed


@cache
def members(name: str) -> frozenset[str]:
    """The system calls of a set such as @system-service, or a single one."""
    if not name.startswith("@"):
        return frozenset({name})
    listing = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
    ).stdout
    lines = [line.strip() for line in listing.splitlines() if line.startswith("    ")]
    return frozenset().union(*(members(line) for line in lines if line and not line.startswith("#")))


def allowed(filters: list[str]) -> frozenset[str]:
    """The calls that the SystemCallFilter= lines of a unit, in their order, allow."""
    names: frozenset[str] = frozenset()
    for line in filters:
        listed = frozenset().union(*(members(name) for name in line.removeprefix("~").split()))
        names = names - listed if line.startswith("~") else names | listed
    return names


def forbidden(filters: list[str]) -> frozenset[str]:
    """All other known calls."""
    return members("@known") - allowed(filters)
