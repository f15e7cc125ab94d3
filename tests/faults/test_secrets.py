"""Secrets from the environment appear nowhere, whatever fails: not in logs, files, `status` or `ps`."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.command import Neardup
from tests.support.faults.bed import configuration, served_samples
from tests.support.faults.fault_proxy import Fault, Proxy
from tests.support.resource_meter import descendants
from tests.support.servers import free_port, redis_server

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
