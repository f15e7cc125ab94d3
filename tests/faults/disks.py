"""Disks that are small, or full, or read-only: file systems in memory, which root may mount."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class Disk:
    """A file system of its own, mounted at a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def remount(self, option: str) -> None:
        """With an option of mount(8), such as `ro` or `size=1m`."""
        subprocess.run(["mount", "-o", f"remount,{option}", self.folder], check=True)


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Disk]:
    """A file system of this size; the test is skipped where none can be mounted."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
