"""Small, full and read-only disks: file systems in memory, which root may mount."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CAP_SYS_ADMIN = 21


class Disk:
    """A file system mounted at a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def remount(self, option: str) -> None:
        """Remount it with an option of mount(8), such as `ro` or `size=1m`."""
        subprocess.run(["mount", "-o", f"remount,{option}", self.folder], check=True)


def may_mount() -> bool:
    """Whether this process has CAP_SYS_ADMIN; the bit is that of capabilities(7)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return bool(int(status.partition("CapEff:")[2].split()[0], 16) >> CAP_SYS_ADMIN & 1)


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Disk]:
    """Mount a file system of this size; the test is skipped if this process may not mount one."""
    if not may_mount():
        pytest.skip("mounting a file system takes CAP_SYS_ADMIN")
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", folder], check=True)
    try:
        yield Disk(folder)
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
