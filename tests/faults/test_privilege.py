"""The least that is needed is enough: the units' system calls, and a ledger for its group and nobody else."""

import json
import os
import re
import shutil
import signal
import subprocess
import urllib.parse
from collections.abc import Iterator
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest

from tests.support.faults.posix_users import GROUP, Box, Person, box
from tests.support.faults.system_calls import forbidden
from tests.support.paths import ROOT
from tests.support.samples import PLANTED, ROWS

TOLERATED = {"mbind"}  # OpenBLAS asks for it
UNITS = sorted(path.name for path in (ROOT / "deploy").glob("*.service"))


@pytest.fixture(scope="module")
def installed_once() -> Iterator[Box]:
    with box() as made:
        yield made


@pytest.fixture
def installed(installed_once: Box) -> Box:
    installed_once.clear()
    return installed_once


def filters(unit: str) -> list[str]:
    lines = (ROOT / "deploy" / unit).read_text(encoding="utf-8").splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith("SystemCallFilter=")]


def assert_shared(state: Path) -> None:
    """All of the ledger's files are for the group, and for nobody else."""
    for path in state.iterdir():
        told = path.stat()
        assert (told.st_gid, told.st_mode & 0o777) == (GROUP, 0o660), f"{path.name}: {told.st_gid}, {told.st_mode:o}"


def test_operators_use_the_ledger_of_the_daemon_and_leave_it_usable(installed: Box) -> None:
    daemon, operator, config = installed.daemon, installed.operator, ("--config", str(installed.config))
    assert daemon(*config, "backfill", "--json").facts["fingerprinted"] == len(ROWS)
    assert_shared(installed.state)
    status = operator(*config, "status", "--json")
    assert status.code == 0, status.err
    assert sum(status.facts["stories"].values()) == len(ROWS)
    assert_shared(installed.state)  # the log is the operator's now
    given = operator(*config, "export", "--new")
    assert (given.code, len(given.out.splitlines())) == (0, 1 + len(PLANTED)), given.err
    copy = operator.home / "copy.db"
    assert operator(*config, "backup", str(copy)).code == 0
    again = daemon(*config, "daily", "--json")
    assert (again.code, again.facts["status"]) == (0, "done"), again.err
    assert len(daemon(*config, "export", "--new").out.splitlines()) == 1, "what the operator was given is on record"
    assert_shared(installed.state)


def test_operators_judge_while_the_daemon_works(installed: Box) -> None:
    daemon, operator, config = installed.daemon, installed.operator, ("--config", str(installed.config))
    assert daemon(*config, "backfill").code == 0
    command = operator.command(*config, "review", "--listen", "127.0.0.1:0")
    with subprocess.Popen(command, env=operator.env, cwd="/", stderr=subprocess.PIPE, text=True) as desk:
        try:
            assert desk.stderr is not None
            address = json.loads(desk.stderr.readline())["address"].rstrip("/")
            assert daemon(*config, "daily").code == 0, "beside a desk that has the ledger open"
            judge(address)
        finally:
            desk.terminate()
    assert operator(*config, "status", "--json").facts["verdicts"]["judged"] == {"template": 1}
    assert_shared(installed.state)
    assert daemon(*config, "daily").code == 0


def judge(address: str) -> None:
    """Say of the first pair on the desk that it is a template."""
    opener = build_opener(HTTPCookieProcessor(CookieJar()))

    def ask(path: str, form: dict[str, str] | None = None) -> str:
        data = urllib.parse.urlencode(form).encode() if form else None
        with opener.open(Request(address + path, data, {"Origin": address})) as answer:
            return str(answer.read().decode())

    ask("/name", {**hidden(ask("/name")), "name": "Asha"})
    found = re.search(r'"(/pair/\d+/\d+)', ask("/"))
    assert found
    form = hidden(ask(found[1]).partition('class="judge"')[2].partition("</form>")[0])
    ask(f"{found[1]}/verdict", {**form, "verdict": "template", "note": ""})


def hidden(page: str) -> dict[str, str]:
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))


def test_a_ledger_made_by_an_operator_or_root_is_the_daemons_too(installed: Box) -> None:
    config = ("--config", str(installed.config))
    assert installed.operator(*config, "backfill").code == 0
    assert_shared(installed.state)
    assert installed.daemon(*config, "daily").code == 0


def test_strangers_are_told_in_a_line_that_they_may_not(installed: Box) -> None:
    config = ("--config", str(installed.config))
    assert installed.daemon(*config, "backfill").code == 0
    readable = installed.state.parent / "readable.toml"
    shutil.copyfile(installed.config, readable)
    for person, path, words in (
        (installed.stranger, installed.config, "cannot read the configuration"),
        (installed.stranger, readable, f"{installed.state}/neardup.db: Permission denied"),
    ):
        for command in (["status"], ["daily"], ["export"]):
            ended = person("--config", str(path), *command)
            assert ended.code in (1, 2), ended
            assert "Traceback" not in ended.err
            assert words in ended.err.splitlines()[-1], ended.err


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_lives_with_its_filter_of_system_calls(unit: str, installed: Box) -> None:
    """What the filter forbids fails as it does there, and the command does its work all the same."""
    names = ",".join(f"?{name}" for name in sorted(forbidden(filters(unit))))
    trace = installed.daemon.home / "trace"
    before = ["strace", "-f", "--seccomp-bpf", "-o", str(trace), "-e", f"trace={names}"]
    before += ["-e", f"inject={names}:error=EPERM", "-e", "signal=none"]
    work(unit, installed, installed.daemon, before)
    met = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(encoding="utf-8"), re.MULTILINE))
    assert met <= TOLERATED, f"forbidden, and asked for: {sorted(met)}"


def work(unit: str, installed: Box, who: Person, before: list[str]) -> None:
    """What a unit's command is for."""
    config = ("--config", str(installed.config))
    match unit:
        case "neardup-backfill.service":
            ended = who(*config, "backfill", "--fresh", "--json", before=before)
            assert ended.code == 0, ended.err
            assert sum(ended.facts["flagged"].values()) == len(PLANTED)
        case "neardup-backup.service":
            assert who(*config, "backfill").code == 0
            assert who(*config, "backup", str(who.home / "copy.db"), before=before).code == 0
        case "neardup-review.service":
            assert who(*config, "backfill").code == 0
            command = who.command(*config, "review", "--listen", "127.0.0.1:0", before=before)
            with subprocess.Popen(command, env=who.env, cwd="/", stderr=subprocess.PIPE, text=True) as desk:
                assert desk.stderr is not None
                address = json.loads(desk.stderr.readline())["address"].rstrip("/")
                judge(address)
                end(desk)
        case _:
            command = who.command(*config, "run", before=before)
            with subprocess.Popen(command, env=who.env, cwd="/", stderr=subprocess.PIPE, text=True) as service:
                assert service.stderr is not None
                while json.loads(line := service.stderr.readline())["event"] != "run ended":
                    pass
                assert json.loads(line)["fingerprinted"] == len(ROWS)
                end(service)


def end(traced: subprocess.Popen[str]) -> None:
    """Ask the command to stop, not what traces it; it must end well."""
    children = Path(f"/proc/{traced.pid}/task/{traced.pid}/children").read_text(encoding="ascii")
    os.kill(int(children.split()[0]), signal.SIGTERM)
    _, said = traced.communicate(timeout=60)
    assert (traced.returncode, "Traceback" in said) == (0, False), said
