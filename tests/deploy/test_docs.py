"""Laws of README and deploy/docs: links resolve, commands and targets exist, lists of keys, metrics and reasons agree
with the program, and the examples of the library print what its page says.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from neardup.cli import COMMANDS, main
from neardup.config.table import find_description, list_keys, replace_table
from neardup.records import Dead, Skip
from neardup.telemetry.metrics import make_metrics

from tests.support.paths import ROOT, SAMPLES

README = ROOT / "README.md"
RUNBOOK = ROOT / "deploy" / "RUNBOOK.md"
DOCS = ROOT / "deploy" / "docs"
PAGES = [README, RUNBOOK, *sorted(DOCS.glob("*.md"))]
PLACEHOLDER = re.compile(r"…|process 123")

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"(?m)^#+ (.+)$", read(page))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


def typed(page: Path) -> list[str]:
    """The lines of a page's code blocks that call neardup with all its arguments."""
    blocks = re.findall(r"```sh\n(.*?)```", read(page), re.DOTALL) + re.findall(r"(?m)^ {4}(\S.*)$", read(page))
    calls = r"(?m)^(?:\.venv/bin/)?neardup ([a-z].*?)(?: +#.*)?$"
    return [line for block in blocks for line in re.findall(calls, block)]


def mentioned(page: Path) -> list[str]:
    """The commands in a page's running text and tables, with placeholders for arguments."""
    return [" ".join(code.split()) for code in re.findall(r"`neardup ([a-z][^`]*)`", read(page))]


def options(command: click.Command) -> set[str]:
    return {"--help", *(name for parameter in command.params for name in parameter.opts)}


def test_the_readme_has_at_most_10000_bytes() -> None:
    size = README.stat().st_size
    assert size <= 10_000, f"README.md has {size} bytes; details belong in deploy/docs"


def test_the_readme_links_to_every_document() -> None:
    missing = {page.name for page in DOCS.glob("*.md") if f"(deploy/docs/{page.name})" not in read(README)}
    assert not missing, f"README.md does not link to {sorted(missing)}"


@each_page
def test_every_relative_link_resolves(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", read(page)):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name} links to {link}, which does not exist"
        assert not anchor or anchor in anchors(target), f"{page.name} links to {link}: no such heading"


@each_page
def test_every_command_in_a_code_block_is_valid(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for line in typed(page):
        name, *arguments = shlex.split(re.split("[|>]", line)[0].replace("var/demo", str(SAMPLES)))
        with click.Context(main) as context:
            command = main.get_command(context, name)
            assert command is not None, f"{page.name}: there is no command {name}"
            with command.make_context(name, arguments, parent=context):
                pass


@each_page
def test_every_command_and_option_that_is_mentioned_exists(page: Path) -> None:
    for code in mentioned(page):
        name = code.split()[0]
        with click.Context(main) as context:
            command = main.get_command(context, name)
        assert command is not None, f"{page.name}: there is no command {name}"
        unknown = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", code)) - options(command)
        assert not unknown, f"{page.name}: `neardup {code}`: no option {sorted(unknown)}"


def test_the_readme_lists_every_command() -> None:
    listed = {code.split()[0] for code in mentioned(README)}
    assert listed == set(COMMANDS), "the table of commands in README.md is not the list of commands"


def test_help_lists_commands_with_the_first_sentence_of_their_help() -> None:
    with click.Context(main) as context:
        for name, (_, line) in COMMANDS.items():
            command = main.get_command(context, name)
            assert command is not None
            first = (command.help or "").partition("\n\n")[0].replace("\n", " ")
            assert first.startswith(line), f"neardup --help says of {name}: {line}"


@each_page
def test_every_make_target_that_is_mentioned_exists(page: Path) -> None:
    targets = set(re.findall(r"(?m)^([a-z-]+):", read(ROOT / "Makefile")))
    named = set(re.findall(r"(?m)(?:^ *|`)make ([a-z][a-z-]*)", read(page)))
    assert named <= targets, f"{page.name}: the Makefile has no target {sorted(named - targets)}"


@each_page
def test_every_file_that_is_mentioned_exists(page: Path) -> None:
    paths = re.findall(r"(?<![\w/])((?:deploy|daemon|tests)/[\w./*-]+\w)", read(page))
    missing = {path for path in paths if not list(ROOT.glob(path))}
    assert not missing, f"{page.name} names files that do not exist: {sorted(missing)}"


def test_every_configuration_key_has_a_description() -> None:
    undescribed = [f"{section}.{key}" for section, key, field in list_keys() if not find_description(field)]
    assert not undescribed, f"Field(description=...) is missing for {undescribed}"


def test_the_table_of_keys_is_what_the_generator_writes() -> None:
    text = read(DOCS / "configuration.md")
    assert text == replace_table(text), "deploy/docs/configuration.md is out of date: run `make docs`"


def test_every_configuration_key_that_is_mentioned_exists() -> None:
    known = {f"{section}.{key}" for section, key, _ in list_keys()}
    sections = {section for section, _, _ in list_keys()}
    for page in PAGES:
        for section, key in re.findall(r"`([a-z]+)\.([a-z_]+)`", read(page)):
            if section in sections:
                assert f"{section}.{key}" in known, f"{page.name}: there is no key {section}.{key}"


def test_the_documented_metrics_are_those_that_exist() -> None:
    wrappers = make_metrics()
    known = {name.removesuffix("_total") for name in (next(iter(wrapper.describe())).name for wrapper in wrappers)}
    table = read(DOCS / "operations.md").partition("## Metrics")[2].partition("\n## ")[0]
    named = {name.removesuffix("_total") for name in re.findall(r"\bneardup_\w+", table)}
    assert named == known, f"not documented: {sorted(known - named)}; do not exist: {sorted(named - known)}"


def test_every_reason_is_explained() -> None:
    section = read(DOCS / "operations.md").partition("## Reasons")[2]
    skipped, dead = section.split("A dead letter has")
    assert set(re.findall(r"`(\w+)`(?=[,:])", skipped)) == set(map(str, Skip))
    assert set(re.findall(r"`(\w+)`(?=[,:])", dead)) == {*map(str, Dead), str(Skip.MISSING)}


def test_the_messages_in_the_troubleshooting_table_exist() -> None:
    table = read(DOCS / "operations.md").partition("## Troubleshooting")[2].partition("\n## ")[0]
    source = " ".join("".join(map(read, (ROOT / "daemon").rglob("*.py"))).split())
    for message in re.findall(r"(?m)^\| `([^`]+ [^`]+)` \|", table):
        words = PLACEHOLDER.split(message)[0].partition(":")[0].strip()
        assert words in source, f"the program has no message {words!r}"


def test_own_stories_need_the_three_commands_of_the_readme(tmp_path: Path) -> None:
    [block] = re.findall(r"```sh\n(.*?)```", read(README), re.DOTALL)
    assert len(block.splitlines()) == 3
    shutil.copytree(SAMPLES / "stories" / "HINDI", tmp_path / "my-pages")
    script = block.replace(".venv/bin/neardup", f"{shlex.quote(sys.executable)} -m neardup")
    env = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
    env["NEARDUP_METRICS__LISTEN"] = "127.0.0.1:0"
    done = subprocess.run(["bash", "-euc", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    page = (tmp_path / "var" / "flags.html").read_text(encoding="utf-8")
    assert "partial" in page, f"no copy was found among the Hindi samples\n{done.stdout}"


def test_the_examples_of_the_library_are_true() -> None:
    page = ROOT / "deploy" / "docs" / "library.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried > 8, f"only {tried} examples of {page.name} were run"
    assert not failed, f"{failed} examples of {page.name} print something else; the output above shows them"
