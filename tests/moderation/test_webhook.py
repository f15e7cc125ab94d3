"""The webhook: the posted summary, retries, and errors that keep the URL secret."""

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


async def test_summary_of_a_run_is_posted() -> None:
    async with webhook_server(200) as (url, received):
        await notify_webhook(section(url), "daily", "done", FACTS)
    assert received == [
        {
            "text": "neardup daily done: 12,000 listed, 1,207 flagged (exact 3, near 1,204), file /var/flags.csv",
            "command": "daily",
            "status": "done",
            **FACTS,
            "file": "/var/flags.csv",
        }
    ]


@pytest.mark.parametrize("busy", [500, 503, 429])
async def test_busy_webhook_is_retried(busy: int, warnings: list[Any]) -> None:
    with stamina.set_testing(True, attempts=3):
        async with webhook_server(busy, busy, 204) as (url, received):
            await notify_webhook(section(url), "daily", "done", FACTS)
    assert len(received) == 3
    assert [entry["event"] for entry in warnings].count("trying again") == 2


async def test_failed_export_is_reported_without_a_file() -> None:
    failed = FACTS | {"warnings": {"export": "cannot write /var/flags.csv: Not a directory"}}
    async with webhook_server(200) as (url, received):
        await notify_webhook(section(url), "daily", "done", failed)
    assert received[0]["file"] is None
    assert received[0]["text"].endswith("near 1,204), export failed: cannot write /var/flags.csv: Not a directory")


@pytest.mark.parametrize(("answer", "times"), [(404, 1), (302, 1), (503, 2)])
async def test_refusal_is_raised_without_the_url(answer: int, times: int, warnings: list[Any]) -> None:
    with stamina.set_testing(True, attempts=2):
        async with webhook_server(*[answer] * 9) as (url, received):
            with pytest.raises(NeardupError, match=f"export.webhook answers {answer}") as refusal:
                await notify_webhook(section(url), "daily", "done", FACTS)
    assert len(received) == times
    assert SECRET not in str([refusal.value, warnings]), "the URL may be a secret"


async def test_missing_answer_is_raised_without_the_url(warnings: list[Any]) -> None:
    with stamina.set_testing(True, attempts=1), pytest.raises(Transient, match="does not answer: ") as failure:
        await notify_webhook(section(f"http://127.0.0.1:{free_port()}/{SECRET}"), "daily", "done", FACTS)
    assert SECRET not in str([failure.value, warnings])


async def test_nothing_is_posted_without_a_webhook() -> None:
    await notify_webhook(section(""), "daily", "done", FACTS)
