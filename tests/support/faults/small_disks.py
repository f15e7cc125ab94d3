"""Disks that are small, or full, or read-only: file systems in memory, which root may mount."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CAP_SYS_ADMIN = 21


class Disk:
    """A file system of its own, mounted at a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def remount(self, option: str) -> None:
        """With an option of mount(8), such as `ro` or `size=1m`."""
        subprocess.run(["mount", "-o", f"remount,{option}", self.folder], check=True)


def may_mount() -> bool:
    """Whether this process has the capability, as capabilities(7) numbers it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) >> CAP_SYS_ADMIN & 1)


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Disk]:
    """A file system of this size; the test is skipped where the system lets these tests mount none."""
    if not may_mount():
        pytest.skip("to mount a file system takes CAP_SYS_ADMIN")
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", folder], check=True)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
