"""The summary of a run, posted: what is said, what is tried again, and that a webhook that fails is only a warning."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stamina
import structlog
from neardup.config import Config, Content, Export, Source
from neardup.moderation.webhook import tell

from tests.support.servers import free_port
from tests.support.webhook_server import SECRET, other_side

FACTS = {"listed": 12_000, "fingerprinted": 9000, "flagged": {"exact": 3, "near": 1204}, "seconds": 8.5}


def config(url: str) -> Config:
    export = Export(path=Path("/var/flags.csv"), webhook=url)
    return Config(source=Source(manifest=Path("m.csv")), content=Content(url="file:."), export=export)


@pytest.fixture
def warnings() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as logged:
        yield logged


async def test_what_is_posted() -> None:
    async with other_side(200) as (url, told):
        await tell(config(url), "daily", "done", FACTS)
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
        async with other_side(busy, busy, 204) as (url, told):
            await tell(config(url), "daily", "done", FACTS)
    assert len(told) == 3
    assert [one["event"] for one in warnings].count("trying again") == 2


@pytest.mark.parametrize(("answer", "times"), [(404, 1), (302, 1), (503, 2)])
async def test_one_that_fails_is_a_warning_without_its_url(answer: int, times: int, warnings: list[Any]) -> None:
    with stamina.set_testing(True, attempts=2):
        async with other_side(*[answer] * 9) as (url, told):
            await tell(config(url), "daily", "done", FACTS)
    assert len(told) == times
    assert (warnings[-1]["event"], warnings[-1]["why"]) == (
        "the webhook was not told of the run",
        f"export.webhook answers {answer}",
    )
    assert SECRET not in str(warnings), "the URL may be a secret"


async def test_one_that_is_away_is_a_warning(warnings: list[Any]) -> None:
    with stamina.set_testing(True, attempts=1):
        await tell(config(f"http://127.0.0.1:{free_port()}/{SECRET}"), "daily", "done", FACTS)
    assert warnings[-1]["why"].startswith("export.webhook does not answer: ")
    assert SECRET not in str(warnings)


async def test_none_is_told_of_nothing() -> None:
    await tell(config(""), "daily", "done", FACTS)
