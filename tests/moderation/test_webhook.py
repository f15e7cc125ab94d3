"""The summary of a run, posted: its words, what is tried again, and what an error shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stamina
import structlog
from neardup.config import Export
from neardup.errors import NeardupError, Transient
from neardup.moderation.webhook import notify_webhook

from tests.support.servers import free_port
from tests.support.webhook_server import SECRET, webhook_server

FACTS = {
    "listed": 12_000,
    "fingerprinted": 9000,
    "flagged": {"exact": 3, "near": 1204},
    "seconds": 8.5,
    "warnings": {},
}


def section(url: str) -> Export:
    return Export(path=Path("/var/flags.csv"), webhook=url)


@pytest.fixture
def warnings() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as logged:
        yield logged


async def test_what_is_posted() -> None:
    async with webhook_server(200) as (url, told):
        await notify_webhook(section(url), "daily", "done", FACTS)
    assert told == [
        {
            "text": "neardup daily done: 12,000 listed, 1,207 flagged (exact 3, near 1,204), file /var/flags.csv",
            "command": "daily",
            "status": "done",
            **FACTS,
            "file": "/var/flags.csv",
        }
    ]


@pytest.mark.parametrize("busy", [500, 503, 429])
async def test_a_busy_one_is_asked_again(busy: int, warnings: list[Any]) -> None:
    with stamina.set_testing(True, attempts=3):
        async with webhook_server(busy, busy, 204) as (url, told):
            await notify_webhook(section(url), "daily", "done", FACTS)
    assert len(told) == 3
    assert [one["event"] for one in warnings].count("trying again") == 2


async def test_an_export_that_failed_is_said_and_no_file_named() -> None:
    failed = FACTS | {"warnings": {"export": "cannot write /var/flags.csv: Not a directory"}}
    async with webhook_server(200) as (url, told):
        await notify_webhook(section(url), "daily", "done", failed)
    assert told[0]["file"] is None
    assert told[0]["text"].endswith("near 1,204), export failed: cannot write /var/flags.csv: Not a directory")


@pytest.mark.parametrize(("answer", "times"), [(404, 1), (302, 1), (503, 2)])
async def test_a_refusal_is_raised_without_the_url(answer: int, times: int, warnings: list[Any]) -> None:
    with stamina.set_testing(True, attempts=2):
        async with webhook_server(*[answer] * 9) as (url, told):
            with pytest.raises(NeardupError, match=f"export.webhook answers {answer}") as refusal:
                await notify_webhook(section(url), "daily", "done", FACTS)
    assert len(told) == times
    assert SECRET not in str([refusal.value, warnings]), "the URL may be a secret"


async def test_silence_is_raised_without_the_url(warnings: list[Any]) -> None:
    with stamina.set_testing(True, attempts=1), pytest.raises(Transient, match="does not answer: ") as silence:
        await notify_webhook(section(f"http://127.0.0.1:{free_port()}/{SECRET}"), "daily", "done", FACTS)
    assert SECRET not in str([silence.value, warnings])


async def test_no_webhook_is_no_error() -> None:
    await notify_webhook(section(""), "daily", "done", FACTS)
