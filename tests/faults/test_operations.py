"""What operators go by: log lines, and a runbook for every alert whose commands are commands."""

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
from neardup.cli import main

from tests.support.command import Neardup, embedded
from tests.support.deploy_files import read_yaml, text_of
from tests.support.generated_stories import configuration, generate
from tests.support.paths import ROOT, SAMPLES

RUNBOOK = text_of("RUNBOOK.md")
SECTIONS = re.split(r"(?m)^## ", RUNBOOK)[1:]
OTHERS = {"systemctl", "journalctl", "redis-cli", "usermod", "df", "du", "ls", "mkdir", "mv", "install", "alias"}
Make = Callable[..., Neardup]


def commands(text: str) -> list[str]:
    """The lines of its shell blocks, but for the function that says how to type the others."""
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [line for block in blocks if "neardup() {" not in block for line in block.splitlines()]


def test_every_alert_has_a_section_and_every_section_of_an_alert_has_one() -> None:
    alerts = {rule["alert"] for group in read_yaml("neardup.rules.yml")["groups"] for rule in group["rules"]}
    titles = [section.splitlines()[0] for section in SECTIONS]
    assert {title for title in titles if title.startswith("Neardup")} == alerts
    assert len(titles) == len(set(titles))
    for section in SECTIONS:
        if section.startswith("Neardup"):
            assert "**Means:**" in section and "**Type:**" in section and commands(section), section.splitlines()[0]


@pytest.mark.parametrize("line", sorted(set(commands(RUNBOOK))))
def test_every_command_of_the_runbook_is_one(line: str) -> None:
    first, *arguments = shlex.split(line.partition("|")[0])
    if first != "neardup":
        assert first in OTHERS, line
        return
    with click.Context(main) as context:
        command = main.get_command(context, arguments[0])
        assert command is not None, f"there is no {arguments[0]}"
        command.make_context(arguments[0], arguments[1:], parent=context)


def test_what_the_runbook_speaks_of_exists() -> None:
    for unit in re.findall(r"neardup-\w+(?=\.timer|\.service)|(?<=start )neardup-\w+", RUNBOOK):
        assert (ROOT / "deploy" / f"{unit}.service").exists(), unit
    for link in re.findall(r"\]\(#([\w-]+)\)", RUNBOOK):
        assert link in {section.splitlines()[0].lower().replace(" ", "-") for section in SECTIONS}, link
    said = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "daemon").rglob("*.py"))
    for words in re.findall(r"`((?:written|the ledger has|the index has|is damaged|disk is full)[^`…:]*)", RUNBOOK):
        assert " ".join(words.split()) in said or words == "disk is full", words


def lines_of(err: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in err.splitlines()]


def test_a_healthy_story_has_no_line(make_neardup: Make, tmp_path: Path) -> None:
    """Lines do not grow with stories: none at all for a backfill and a daily run without trouble."""
    generate(tmp_path, 500)
    neardup = make_neardup(configuration(tmp_path))
    for command in (["backfill"], ["daily"], ["backfill", "--fresh"], ["sweep"]):
        ended = neardup(*command)
        assert (ended.code, ended.err) == (0, ""), ended.err


@pytest.fixture
def troubled(make_neardup: Make, tmp_path: Path) -> tuple[Neardup, int]:
    """The samples with a row that is none, and a page that cannot be read; and that page's story."""
    stories = Path(shutil.copytree(SAMPLES / "stories", tmp_path / "stories"))
    page = next(stories.rglob("*.html"))
    page.unlink()
    page.symlink_to(page)
    manifest = tmp_path / "manifest.csv"
    rows = (SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()
    manifest.write_text("\n".join([*rows, "none," + "," * rows[0].count(",")]) + "\n", encoding="utf-8")
    config = embedded(manifest=manifest, stories=stories)
    return make_neardup(config), int(page.stem)


def test_a_line_of_a_run_names_it_and_one_about_a_story_names_that(troubled: tuple[Neardup, int]) -> None:
    neardup, unread = troubled
    for run in (1, 2):
        lines = lines_of(neardup("backfill").err)
        assert {line["run"] for line in lines} == {run}
        assert all(list(line)[:4] == ["timestamp", "level", "run", "event"] for line in lines)
        letters = [str(line["story"]) for line in lines if line["event"] == "dead-lettered"]
        assert sorted(re.sub(":.*", "", story) for story in letters) == sorted([str(unread), "row"])
        tried = [line["story"] for line in lines if line["event"] == "trying again"]
        assert set(tried) == {unread}


def test_full_buckets_are_told_once_a_language(make_neardup: Make, tmp_path: Path) -> None:
    with (SAMPLES / "manifest.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    lines = ["id,language,path"]
    for copy in range(3):
        lines += [f"{copy}{row['id']},{row['language']},{row['language']}/{row['id']}.html" for row in rows]
    manifest = tmp_path / "manifest.csv"
    manifest.write_text("\n".join(lines) + "\n", encoding="utf-8")
    neardup = make_neardup(embedded(manifest=manifest) + "[detection]\nmax_bucket = 1\n")
    ended = neardup("backfill", NEARDUP_RUN__BATCH="16")
    told = Counter(line["language"] for line in lines_of(ended.err) if line["event"] == "max_bucket reached")
    assert told == Counter({row["language"] for row in rows}), ended.err


def test_on_a_terminal_lines_are_for_people(troubled: tuple[Neardup, int]) -> None:
    neardup, _ = troubled
    command = ["script", "-qec", shlex.join(neardup.command("backfill")), "/dev/null"]
    done = subprocess.run(command, env=neardup.env, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if "dead-lettered" in line and "reason" in line]
    assert len(said) == 2, done.stdout
    assert not any(line.lstrip().startswith("{") for line in done.stdout.splitlines())


def test_in_the_journal_the_last_line_is_an_object_too(neardup: Neardup) -> None:
    ended = neardup("backfill", NEARDUP_CONTENT__URL="file:/nowhere", JOURNAL_STREAM="8:15")
    [line] = lines_of(ended.err)
    assert (ended.code, line["event"], line["run"]) == (1, "failed", 1)
    assert str(line["why"]).startswith("content.url: no folder /nowhere")
