"""The system calls that the SystemCallFilter of a unit allows and forbids."""

import subprocess
from functools import cache


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
