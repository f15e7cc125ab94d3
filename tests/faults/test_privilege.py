"""Least privilege suffices: the system calls of the units, and a ledger that only its group can access.

Secrets from the environment appear nowhere, whatever fails: not in logs, files, `status` or `ps`.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, Request, build_opener

import pytest
from neardup import Client

from tests.support.command import Neardup
from tests.support.faults.bed import configuration, served_samples
from tests.support.faults.fault_proxy import Fault, Proxy
from tests.support.faults.posix_users import GROUP, Installation, User, forbidden, installation
from tests.support.paths import ROOT, SAMPLES
from tests.support.resource_meter import descendants
from tests.support.samples import PLANTED, ROWS
from tests.support.servers import free_port, redis_server
from tests.support.service import Systemd

TOLERATED = {"mbind", "sched_setaffinity"}  # OpenBLAS and ONNX Runtime call them, and work without them
CONFINED = [sys.executable, "-m", "tests.support.faults.executable_memory"]
PATIENCE_SECONDS = 60  # strace makes a service on a busy machine slow
UNITS = sorted(path.name for path in (ROOT / "deploy").glob("*.service"))


@pytest.fixture(scope="module")
def installed_once() -> Iterator[Installation]:
    with installation() as installed:
        yield installed


@pytest.fixture
def installed(installed_once: Installation) -> Installation:
    installed_once.clear()
    return installed_once


def filters(unit: str) -> list[str]:
    lines = (ROOT / "deploy" / unit).read_text(encoding="utf-8").splitlines()
    return [line.partition("=")[2] for line in lines if line.startswith("SystemCallFilter=")]


def assert_shared(state: Path) -> None:
    """All files and folders of the ledger are accessible to the group and not to others."""
    for path in state.rglob("*"):
        stat, mode = path.stat(), 0o770 if path.is_dir() else 0o660
        assert (stat.st_gid, stat.st_mode & 0o777) == (GROUP, mode), f"{path.name}: {stat.st_gid}, {stat.st_mode:o}"


def test_operators_and_the_daemon_share_a_ledger(installed: Installation) -> None:
    daemon, operator, config = installed.daemon, installed.operator, ("--config", str(installed.config))
    assert daemon(*config, "backfill", "--json").facts["fingerprinted"] == len(ROWS)
    assert_shared(installed.state)
    status = operator(*config, "status", "--json")
    assert status.code == 0, status.err
    assert sum(status.facts["stories"].values()) == len(ROWS)
    assert_shared(installed.state)  # the operator owns the SQLite log now
    exported = operator(*config, "export", "--new")
    assert (exported.code, len(exported.out.splitlines())) == (0, 1 + len(PLANTED)), exported.err
    copy = operator.home / "copy.db"
    assert operator(*config, "backup", str(copy)).code == 0
    again = daemon(*config, "daily", "--json")
    assert (again.code, again.facts["status"]) == (0, "done"), again.err
    assert len(daemon(*config, "export", "--new").out.splitlines()) == 1, "the export of the operator was not recorded"
    assert_shared(installed.state)


def test_operators_judge_while_the_daemon_works(installed: Installation) -> None:
    daemon, operator, config = installed.daemon, installed.operator, ("--config", str(installed.config))
    installed.fill()
    command = operator.command(*config, "review", "--listen", "127.0.0.1:0")
    with subprocess.Popen(command, env=operator.env, cwd="/", stderr=subprocess.PIPE, text=True) as desk:
        try:
            assert desk.stderr is not None
            address = json.loads(desk.stderr.readline())["address"].rstrip("/")
            assert daemon(*config, "daily").code == 0, "the daily run failed while a desk had the ledger open"
            give_verdict(address)
        finally:
            desk.terminate()
    assert operator(*config, "status", "--json").facts["verdicts"]["judged"] == {"template": 1}
    assert_shared(installed.state)
    assert daemon(*config, "daily").code == 0


def give_verdict(address: str) -> None:
    """Give the first pair of the desk the verdict template."""
    opener = build_opener(HTTPCookieProcessor(CookieJar()))

    def request(path: str, form: dict[str, str] | None = None) -> str:
        data = urllib.parse.urlencode(form).encode() if form else None
        with opener.open(Request(address + path, data, {"Origin": address})) as answer:
            return str(answer.read().decode())

    request("/name", {**hidden(request("/name")), "name": "Asha"})
    case = re.search(r'"(/case/\d+)', request("/"))
    assert case
    link = re.search(r'"(/pair/\d+/\d+)', request(case[1]))
    assert link
    form = hidden(request(link[1]).partition('class="judge"')[2].partition("</form>")[0])
    request(f"{link[1]}/verdict", {**form, "verdict": "template", "note": ""})


def hidden(page: str) -> dict[str, str]:
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page))


def test_the_daemon_can_use_a_ledger_of_an_operator(installed: Installation) -> None:
    config = ("--config", str(installed.config))
    assert installed.operator(*config, "backfill").code == 0
    assert_shared(installed.state)
    assert installed.daemon(*config, "daily").code == 0


def test_outsiders_get_one_line_of_refusal(installed: Installation) -> None:
    installed.fill()
    readable = installed.state.parent / "readable.toml"
    shutil.copyfile(installed.config, readable)
    for user, path, words in (
        (installed.outsider, installed.config, "cannot read the configuration"),
        (installed.outsider, readable, f"{installed.state}/neardup.db: Permission denied"),
    ):
        for command in (["status"], ["daily"], ["export"]):
            ended = user("--config", str(path), *command)
            assert ended.code in (1, 2), ended
            assert "Traceback" not in ended.err
            assert words in ended.err.splitlines()[-1], ended.err
    doctor = installed.outsider("--config", str(readable), "doctor")
    said = dict(line.split(": ", 1) for line in doctor.out.splitlines())
    assert doctor.code == 1 and "Permission denied" in said["FAIL ledger"], doctor.out + doctor.err
    assert "ok   fingerprints" in said, "the other checks were not made"


def test_code_comes_from_files_only_where_executable_memory_is_refused() -> None:
    """Otherwise the law below would say nothing."""
    code = (
        "import mmap; from neardup.core.native import WHY_MISSING\n"
        "try: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC); print('granted')\n"
        "except PermissionError: print('refused', WHY_MISSING or 'native')\n"
    )
    done = subprocess.run([*CONFINED, sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    if "cannot" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.stdout.split() == ["refused", "native"], done.stdout


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_works_as_it_is_confined(unit: str, installed: Installation) -> None:
    """System calls that the filter forbids fail with EPERM, no memory becomes executable, and the command works."""
    names = ",".join(f"?{name}" for name in sorted(forbidden(filters(unit))))
    trace = installed.daemon.home / "trace"
    before = [*CONFINED, "strace", "-f", "--seccomp-bpf", "-o", str(trace), "-e", f"trace={names}"]
    before += ["-e", f"inject={names}:error=EPERM", "-e", "signal=none"]
    work(unit, installed, installed.daemon, before)
    denied = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(encoding="utf-8"), re.MULTILINE))
    assert denied <= TOLERATED, f"forbidden system calls were made: {sorted(denied)}"


def work(unit: str, installed: Installation, user: User, before: list[str]) -> None:
    """Run the command of a unit and check that it does its work."""
    config = ("--config", str(installed.config))
    match unit:
        case "neardup-backfill.service":
            ended = user(*config, "backfill", "--fresh", "--json", before=before)
            assert ended.code == 0, ended.err
            assert sum(ended.facts["flagged"].values()) == len(PLANTED)
        case "neardup-backup.service":
            installed.fill()
            assert user(*config, "backup", str(user.home / "copy.db"), before=before).code == 0
        case "neardup-review.service":
            installed.fill()
            command = user.command(*config, "review", "--listen", "127.0.0.1:0", before=before)
            with subprocess.Popen(command, env=user.env, cwd="/", stderr=subprocess.PIPE, text=True) as desk:
                assert desk.stderr is not None
                address = json.loads(desk.stderr.readline())["address"].rstrip("/")
                try:
                    give_verdict(address)
                finally:
                    stop(desk)
        case "neardup-audit.service":
            installed.fill()
            ended = user(*config, "audit", "--json", before=before)
            assert (ended.code, ended.facts["stories"]) == (0, len(ROWS)), ended.err
        case "neardup-embed.service":
            installed.fill()
            with installed.config.open("a", encoding="utf-8") as file:
                file.write("[meaning]\ntexts_a_day = 3\n")
            ended = user(*config, "embed", "--since", "2020-01-01T00:00:00Z", "--json", before=before)
            assert ended.code == 0, ended.err
            assert ended.facts["embedded"], "the model made no vector"
        case "neardup-serve.service":
            installed.fill()
            serve_and_check(user, user.command(*config, "serve", "--listen", "127.0.0.1:0", before=before))
        case _:
            command = user.command(*config, "run", before=before)
            with subprocess.Popen(command, env=user.env, cwd="/", stderr=subprocess.PIPE, text=True) as service:
                assert service.stderr is not None
                while json.loads(line := service.stderr.readline())["event"] != "run ended":
                    pass
                assert json.loads(line)["fingerprinted"] == len(ROWS)
                stop(service)


def serve_and_check(user: User, command: list[str]) -> None:
    """Check a copy of a sample at a service, once it serves: it listens before that, and refuses what it cannot do."""
    copied = (SAMPLES / "stories" / "ENGLISH" / "4107000.html").read_text(encoding="utf-8")
    with closing(Systemd(user.home / "serve.sock")) as systemd:
        systemd.path.chmod(0o666)
        env = {"NOTIFY_SOCKET": str(systemd.path), "NEARDUP_SERVE__DEADLINE_SECONDS": str(PATIENCE_SECONDS)}
        with subprocess.Popen(command, env=user.env | env, cwd="/", stderr=subprocess.PIPE, text=True) as service:
            assert service.stderr is not None
            try:
                systemd.wait_for("STATUS=serving")
                address = next(line["address"] for line in map(json.loads, service.stderr) if "address" in line)
                with Client(address, timeout=PATIENCE_SECONDS, deadline=PATIENCE_SECONDS) as client:
                    assert client.check(html=copied, language="ENGLISH").verdict == "copy"
            finally:
                stop(service)


def stop(traced: subprocess.Popen[str]) -> None:
    """Send SIGTERM to the command, not to strace; it must end with success."""
    children = Path(f"/proc/{traced.pid}/task/{traced.pid}/children").read_text(encoding="ascii")
    os.kill(int(children.split()[0]), signal.SIGTERM)
    _, stderr = traced.communicate(timeout=60)
    assert (traced.returncode, "Traceback" in stderr) == (0, False), stderr


Make = Callable[[str], Neardup]
SECRETS = ("hidden-aws-key", "hidden-redis-password", "hidden-review-token", "hidden-webhook")
LOOK_SECONDS = 0.02  # between two looks at the processes of a run
COMMANDS = (("backfill",), ("status",), ("status", "--json"), ("doctor",), ("dead-letters",), ("retry",), ("daily",))


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with served_samples() as proxy:
        yield proxy


@pytest.fixture
def redis_path(tmp_path: Path) -> Iterator[Path]:
    with redis_server(tmp_path, "--requirepass", "hidden-redis-password") as url:
        yield Path(url.removeprefix("unix://"))


@pytest.fixture
def neardup(make_neardup: Make, proxy: Proxy, redis_path: Path) -> Neardup:
    neardup = make_neardup(configuration(proxy.endpoint))
    neardup.env.update(
        {
            "AWS_ACCESS_KEY_ID": "known",
            "AWS_SECRET_ACCESS_KEY": "hidden-aws-key",
            "NEARDUP_INDEX__URL": f"unix://:hidden-redis-password@{redis_path}",
            "NEARDUP_REVIEW__TOKEN": "hidden-review-token",
            "NEARDUP_EXPORT__WEBHOOK": f"http://127.0.0.1:{free_port()}/hidden-webhook",
        }
    )
    return neardup


def assert_hidden(text: str) -> None:
    assert not [secret for secret in SECRETS if secret in text], text


def assert_hidden_in_files(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            assert_hidden(path.read_bytes().decode("latin-1"))


def without_trouble(neardup: Neardup, _: Proxy) -> None:
    """Everything but the webhook answers."""


def refused_by_the_store(_: Neardup, proxy: Proxy) -> None:
    proxy.always = lambda _: Fault.DENIED


def refused_by_redis(neardup: Neardup, _: Proxy) -> None:
    neardup.env["NEARDUP_INDEX__URL"] = neardup.env["NEARDUP_INDEX__URL"].replace(":hidden-", ":no-hidden-")


def without_redis(neardup: Neardup, _: Proxy) -> None:
    neardup.env["NEARDUP_INDEX__URL"] = f"redis://:hidden-redis-password@127.0.0.1:{free_port()}"


def with_a_wrong_url(neardup: Neardup, _: Proxy) -> None:
    neardup.env["NEARDUP_INDEX__URL"] = "redi://:hidden-redis-password@127.0.0.1"


def with_a_short_token(neardup: Neardup, _: Proxy) -> None:
    neardup.env["NEARDUP_EXPORT__WEBHOOK"] = "hidden-webhook"


@pytest.mark.parametrize(
    "trouble",
    [without_trouble, refused_by_the_store, refused_by_redis, without_redis, with_a_wrong_url, with_a_short_token],
)
def test_no_command_prints_a_secret(trouble: Callable[[Neardup, Proxy], None], neardup: Neardup, proxy: Proxy) -> None:
    trouble(neardup, proxy)
    codes = set()
    for command in COMMANDS:
        ended = neardup(*command)
        assert "Traceback" not in ended.err, ended.err
        assert_hidden(ended.out + ended.err)
        codes.add(ended.code)
    assert codes - {0} or trouble is without_trouble, "nothing failed"
    assert_hidden_in_files(neardup.folder)


def test_ps_shows_no_secret(neardup: Neardup) -> None:
    shown = set[str]()
    command, quiet = neardup.command("backfill"), subprocess.DEVNULL
    with subprocess.Popen(command, cwd=neardup.folder, env=neardup.env, stderr=quiet) as run:
        while run.poll() is None:
            for pid in (str(run.pid), *descendants(run.pid)):
                with suppress(OSError):  # it has ended
                    shown.add((Path("/proc") / pid / "cmdline").read_text(encoding="utf-8"))
            with suppress(subprocess.TimeoutExpired):
                run.wait(LOOK_SECONDS)
    assert run.returncode == 0
    assert any("neardup.pages.reader_process" in line for line in shown), "no reader process was seen"
    assert_hidden("".join(shown))
