"""What operators rely on: log lines, and a runbook section with valid commands for every alert.

deploy/redis.acl grants exactly what the commands and the runbook use.
"""

import csv
import json
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import redis
from neardup.cli import main

from tests.support.command import Neardup, embedded
from tests.support.generated_stories import configuration, generate
from tests.support.paths import ROOT, SAMPLES, read_yaml, text_of
from tests.support.servers import redis_server

RUNBOOK = text_of("RUNBOOK.md")
SECTIONS = re.split(r"(?m)^## ", RUNBOOK)[1:]
OTHERS = {
    "systemctl",
    "journalctl",
    "redis-cli",
    "usermod",
    "df",
    "du",
    "ls",
    "mkdir",
    "mv",
    "install",
    "alias",
    "test",
}
Make = Callable[..., Neardup]


def commands(text: str) -> list[str]:
    """The lines of the shell blocks, without the block that defines the neardup() shell function."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks if "neardup() {" not in block for line in block.splitlines()]


def test_alerts_and_sections_of_the_runbook_correspond() -> None:
    alerts = {rule["alert"] for group in read_yaml("neardup.rules.yml")["groups"] for rule in group["rules"]}
    titles = [section.splitlines()[0] for section in SECTIONS]
    assert {title for title in titles if title.startswith("Neardup")} == alerts
    assert len(titles) == len(set(titles))
    for section in SECTIONS:
        if section.startswith("Neardup"):
            assert "**Means:**" in section and "**Type:**" in section and commands(section), section.splitlines()[0]


@pytest.mark.parametrize("line", sorted(set(commands(RUNBOOK))))
def test_every_command_of_the_runbook_is_valid(line: str) -> None:
    first, *arguments = shlex.split(line.partition("|")[0])
    if first != "neardup":
        assert first in OTHERS, line
        return
    with click.Context(main) as context:
        command = main.get_command(context, arguments[0])
        assert command is not None, f"there is no {arguments[0]}"
        command.make_context(arguments[0], arguments[1:], parent=context)


def test_units_links_and_messages_of_the_runbook_exist() -> None:
    for unit in re.findall(r"neardup-\w+(?=\.timer|\.service)|(?<=start )neardup-\w+", RUNBOOK):
        assert (ROOT / "deploy" / f"{unit}.service").exists(), unit
    for link in re.findall(r"\]\(#([\w-]+)\)", RUNBOOK):
        assert link in {section.splitlines()[0].lower().replace(" ", "-") for section in SECTIONS}, link
    source = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "daemon").rglob("*.py"))
    for words in re.findall(r"`((?:written|the ledger has|the index has|is damaged|disk is full)[^`…:]*)", RUNBOOK):
        assert " ".join(words.split()) in source or words == "disk is full", words


def lines_of(err: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in err.splitlines()]


def test_runs_without_trouble_log_nothing(make_neardup: Make, tmp_path: Path) -> None:
    """Runs without trouble log nothing, so logs do not grow with the number of stories."""
    generate(tmp_path, 500)
    neardup = make_neardup(configuration(tmp_path))
    for command in (["backfill"], ["daily"], ["backfill", "--fresh"], ["sweep"]):
        ended = neardup(*command)
        assert (ended.code, {line["event"] for line in lines_of(ended.err)}) == (0, {"run started"}), ended.err


@pytest.fixture
def with_bad_rows(make_neardup: Make, tmp_path: Path) -> tuple[Neardup, int]:
    """The command on the samples with an invalid row and an unreadable page, and the id of that page's story."""
    stories = Path(shutil.copytree(SAMPLES / "stories", tmp_path / "stories"))
    page = next(stories.rglob("*.html"))
    page.unlink()
    page.symlink_to(page)
    manifest = tmp_path / "manifest.csv"
    rows = (SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()
    manifest.write_text("\n".join([*rows, "none," + "," * rows[0].count(",")]) + "\n", encoding="utf-8")
    config = embedded(manifest=manifest, stories=stories)
    return make_neardup(config), int(page.stem)


def test_log_lines_name_their_run_and_story(with_bad_rows: tuple[Neardup, int]) -> None:
    neardup, unread = with_bad_rows
    for run in (1, 2):
        lines = lines_of(neardup("backfill").err)
        assert {line["run"] for line in lines} == {run}
        assert all(list(line)[:4] == ["timestamp", "level", "run", "event"] for line in lines)
        letters = [str(line["story"]) for line in lines if line["event"] == "dead-lettered"]
        assert sorted(re.sub(":.*", "", story) for story in letters) == sorted([str(unread), "row"])
        tried = [line["story"] for line in lines if line["event"] == "trying again"]
        assert set(tried) == {unread}


def test_full_buckets_are_logged_once_per_language(make_neardup: Make, tmp_path: Path) -> None:
    with (SAMPLES / "manifest.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = ["id,language,path"]
    for copy in range(3):
        lines += [f"{copy}{row['id']},{row['language']},{row['language']}/{row['id']}.html" for row in rows]
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("\n".join(lines) + "\n", encoding="utf-8")
    neardup = make_neardup(embedded(manifest=manifest) + "[detection]\nmax_bucket = 1\n")
    ended = neardup("backfill", NEARDUP_RUN__BATCH="16")
    logged = Counter(line["language"] for line in lines_of(ended.err) if line["event"] == "max_bucket reached")
    assert logged == Counter({row["language"] for row in rows}), ended.err


def test_log_lines_on_a_terminal_are_readable_text(with_bad_rows: tuple[Neardup, int]) -> None:
    neardup, _ = with_bad_rows
    command = ["script", "-qec", shlex.join(neardup.command("backfill")), "/dev/null"]
    done = subprocess.run(command, env=neardup.env, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "dead-lettered" in line and "reason" in line]
    assert len(lines) == 2, done.stdout
    assert not any(line.lstrip().startswith("{") for line in done.stdout.splitlines())


def test_the_final_error_in_the_journal_is_json(neardup: Neardup) -> None:
    ended = neardup("backfill", NEARDUP_CONTENT__URL="file:/nowhere", JOURNAL_STREAM="8:15")
    [_, line] = lines_of(ended.err)
    assert (ended.code, line["event"], line["run"]) == (1, "failed", 1)
    assert str(line["why"]).startswith("content.url: no folder /nowhere")


MakeFor = Callable[[str, str], Neardup]
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


def test_the_granted_commands_suffice_and_are_all_used(tmp_path: Path, make_neardup: MakeFor) -> None:
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
