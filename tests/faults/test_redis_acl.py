"""deploy/redis.acl grants exactly what the commands and the runbook use."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from tests.support.command import Neardup, embedded
from tests.support.paths import ROOT, SAMPLES
from tests.support.servers import redis_server

Make = Callable[[str, str], Neardup]
ACL = (ROOT / "deploy" / "redis.acl").read_text(encoding="ascii")
PAGE = str(SAMPLES / "stories" / "TAMIL" / "4104000.html")
ON_THE_INDEX = (
    ("backfill",),
    ("check", PAGE, "--language", "TAMIL"),
    ("reindex",),
    ("forget", "4104006"),
    ("daily",),
    ("status",),
    ("doctor",),
)
COMMANDS = {"documented": (*ON_THE_INDEX, ("sweep",), ("backfill", "--fresh")), "compact": ON_THE_INDEX}
USED_BY_ALL_CLIENTS = {"ping", "unwatch", "discard"}


def granted() -> set[str]:
    return set(re.findall(r" \+([a-z|]+)", ACL))


def used_by_runbook() -> set[str]:
    """The Redis commands that an operator types into redis-cli."""
    runbook = (ROOT / "deploy" / "RUNBOOK.md").read_text(encoding="utf-8")
    typed = [line.split(".sock ")[1].split() for line in runbook.splitlines() if line.startswith("redis-cli")]
    return {words[0] if words[0] in granted() else "|".join(words[:2]) for words in typed}


def test_the_granted_commands_suffice_and_are_all_used(tmp_path: Path, make_neardup: Make) -> None:
    used = set[str]()
    for layout, commands in COMMANDS.items():
        folder = tmp_path / f"redis {layout}"
        folder.mkdir()
        (folder / "redis.acl").write_text(ACL, encoding="ascii")
        options = ("--aclfile", "redis.acl", "--set-max-intset-entries", "1000000", "--dir", str(folder))
        with redis_server(folder, *options) as url, redis.Redis.from_url(url) as client:
            neardup = make_neardup(embedded(index=url), layout)
            for command in commands:
                ended = neardup(*command, NEARDUP_INDEX__LAYOUT=layout)
                assert ended.code == 0, f"{command}: {ended.err}"
            used |= {name.removeprefix("cmdstat_") for name in client.info("commandstats")}
    assert granted() - USED_BY_ALL_CLIENTS - used_by_runbook() <= used, "some granted commands are never used"
    assert used_by_runbook() <= granted(), "the runbook uses commands that are not granted"


@pytest.mark.parametrize(
    "command", ["FLUSHALL", "CONFIG SET maxmemory 1", "SHUTDOWN", "KEYS *", "ACL LIST", "SCRIPT LOAD x", "SUBSCRIBE x"]
)
def test_nothing_else_is_granted(command: str, tmp_path: Path) -> None:
    (tmp_path / "redis.acl").write_text(ACL, encoding="ascii")
    options = ("--aclfile", "redis.acl", "--dir", str(tmp_path))
    denied = pytest.raises(redis.exceptions.NoPermissionError)
    with redis_server(tmp_path, *options) as url, redis.Redis.from_url(url) as client, denied:
        client.execute_command(*command.split())
