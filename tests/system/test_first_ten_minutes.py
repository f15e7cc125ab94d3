"""A newcomer's first ten minutes: the commands of README and of the page on scans, word for word, on an own folder, an
own CSV and an own JSONL, in a folder that has nothing else; only the installed environment takes the place of `make`.
"""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.languages import HINDI
from tests.support.paths import ROOT
from tests.support.sample_texts import STORIES

ORIGINAL, OTHER, THIRD = (STORIES[HINDI][n] for n in (0, 1, 4))  # the others have copies among them
TEXTS = {"tale-1": ORIGINAL, "tale-2": OTHER, "tale-3": THIRD, "copy-of-tale-1": ORIGINAL}
PAIR = {"tale-1", "copy-of-tale-1"}


def commands_of(page: str, heading: str) -> list[str]:
    """The commands in the blocks of code below a heading, up to the next one."""
    section = (ROOT / page).read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    fenced = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    lines = [*re.findall(r"^ {4}(\S.*)$", section, re.MULTILINE), *"".join(fenced).splitlines()]
    return [line for line in lines if re.match(r"(\.venv/bin/)?neardup ", line)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a newcomer has: pages in a folder, the same stories as tables, and the command."""
    command = tmp_path / ".venv" / "bin" / "neardup"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m neardup "$@"\n')
    command.chmod(0o755)
    for place in ("my-pages", "drafts", "published"):
        (tmp_path / place).mkdir()
    for name, text in TEXTS.items():
        page = f"<title>{name}</title><nav>Home, About</nav><article><p>{text}</p></article>"
        (tmp_path / "my-pages" / f"{name}.html").write_text(page, encoding="utf-8")
    (tmp_path / "drafts" / "copy-of-tale-1.txt").write_text(ORIGINAL, encoding="utf-8")
    (tmp_path / "published" / "tale-1.txt").write_text(ORIGINAL, encoding="utf-8")
    with (tmp_path / "stories.csv").open("w", encoding="utf-8", newline="") as out:
        csv.writer(out).writerows([("story_id", "body"), *TEXTS.items()])
    listed = "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in TEXTS.items())
    (tmp_path / "published.jsonl").write_text(listed, encoding="utf-8")
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
    return env | {"PATH": f"{folder / '.venv' / 'bin'}:{env['PATH']}", "NEARDUP_REVIEW__LISTEN": "127.0.0.1:0"}


def run(command: str, folder: Path, *, code: int = 0, stdin: str = "") -> str:
    """What a shell prints for a command that ends with this exit code."""
    shell = ["bash", "-c", command]
    done = subprocess.run(
        shell, cwd=folder, env=environment(folder), input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{command}: {done.stderr}"
    return done.stdout


def assert_flagged(printed: str, command: str) -> None:
    """The copies are printed, and no other stories."""
    assert all(name in printed for name in PAIR), f"{command} does not show the copies: {printed}"
    others = [name for name in TEXTS.keys() - PAIR if name in printed]
    assert not others, f"{command} shows {others}"


def test_an_own_folder_is_scanned_and_kept_by_the_commands_of_readme(folder: Path) -> None:
    commands = commands_of("README.md", "Your own stories")
    assert [command.split()[1 if " --config " not in command else 3] for command in commands] == [
        "scan", "init", "backfill", "export",
    ]  # fmt: skip
    for command in commands:
        printed = run(command, folder)
        if " scan " in command or " backfill" in command:
            assert_flagged(printed, command)
    [row] = csv.DictReader((folder / "copies.csv").read_text(encoding="utf-8").splitlines())
    assert {row["story_id"], row["matched_id"]} == {f"{name}.html" for name in PAIR}
    assert (row["kind"], row["similarity"]) == ("exact", "1.0")
    assert (folder / "var" / "flags.html").exists()


def test_an_own_list_is_read_by_the_option_that_readme_names(folder: Path) -> None:
    [option] = re.findall(r"`(--list [^`]+)`", (ROOT / "README.md").read_text(encoding="utf-8").split("## Commands")[0])
    with (folder / option.split()[1]).open("w", encoding="utf-8", newline="") as out:
        rows = [(name, "hi", f"{name}.html") for name in TEXTS]
        csv.writer(out).writerows([("id", "language", "path"), *rows])
    init, backfill = commands_of("README.md", "Your own stories")[1:3]
    run(f"{init} {option}", folder)
    assert_flagged(run(backfill, folder), backfill)


def test_own_tables_are_scanned_by_the_commands_of_the_page_on_scans(folder: Path) -> None:
    commands = commands_of("deploy/docs/scan.md", "Options")
    *scans, review = commands
    for command in scans:
        printed = run(command, folder, code=int("--fail" in command), stdin=ORIGINAL)
        shown = "tale-1" in printed and ("copy-of-tale-1" in printed or "scan -" in command)
        assert shown and "tale-3" not in printed, f"{command}: {printed}"
    assert [command.split()[2] for command in scans] == ["drafts", "stories.csv", "-", "my-pages"]
    assert (folder / "copies.html").exists()
    with subprocess.Popen(
        review.split(), cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True
    ) as desk:
        assert desk.stderr is not None
        said = next((line for line in desk.stderr if "the review desk is open" in line), None)
        desk.terminate()
        rest = desk.stderr.read()
    assert said and desk.returncode == 0, f"{review}: {rest}"
