"""The webhook: the posted summary, retries, and errors that keep the URL secret."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import stamina
import structlog
from aiohttp import CookieJar
from aiohttp.test_utils import TestClient, TestServer
from neardup.app import open_desk
from neardup.config import Config, Content, Export, Ledger, Source
from neardup.config.sections import Review
from neardup.core.verify.tiers import RETOLD
from neardup.errors import NeardupError, Transient
from neardup.ledger import connect, meaning_flags, verdicts
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.moderation.desk.app import application
from neardup.moderation.desk.parts import announce_undo, announce_verdict
from neardup.moderation.webhook import notify_embedding, notify_webhook
from neardup.records import Verdict

from tests.support.builders import commit, fingerprinted, flag_pair, verify_pending
from tests.support.desk_client import LOOPBACK, get, hidden_fields, post, send
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


@pytest.mark.parametrize(
    ("kinds", "text"),
    [
        (("translated", "retold"), "neardup embed done: 5 flagged (translated 3, retold 2)"),
        (("retold",), "neardup embed done: 2 flagged (retold 2)"),
        ((), None),
    ],
)
async def test_pairs_by_meaning_are_posted_only_when_asked_for(kinds: tuple[Any, ...], text: str | None) -> None:
    async with webhook_server(200) as (url, received):
        asked = Export(webhook=url, webhook_kinds=kinds)
        await notify_embedding(asked, "done", {"translated": 3, "retold": 2})
    assert [event["text"] for event in received] == ([text] if text else [])


async def test_every_verdict_and_undo_is_posted_in_order_and_a_failure_changes_none(
    tmp_path: Path, warnings: list[Any]
) -> None:
    with closing(connect(tmp_path / "neardup.db")) as db:
        flag_pair(db, 1, 2)
    with stamina.set_testing(True, attempts=1):
        async with webhook_server(200, 404, 200) as (url, received):
            config = config_of(tmp_path, url)
            async with open_desk(config, LOOPBACK) as desk:
                for verdict in (Verdict.PLAGIARISM, Verdict.TEMPLATE):
                    seen = await desk.ledger.read(verdicts.state, [1])
                    done = await desk.ledger.write(verdicts.decide, [1], verdict, "नोट", "Asha", seen)
                    announce_verdict(desk, done, verdict)
                await desk.ledger.write(verdicts.undo, done, "Ravi", await desk.ledger.read(verdicts.state, [1]))
                announce_undo(desk, done)
                with closing(connect(tmp_path / "neardup.db")) as db:
                    log = list(verdicts.events_since(db))
    assert [{name: value for name, value in event.items() if name != "text"} for event in received] == log
    assert [event["text"] for event in received] == [
        "neardup: Asha decided plagiarism, stories 1 and 2",
        "neardup: Asha decided template, stories 1 and 2",
        "neardup: Ravi undid template, stories 1 and 2",
    ]
    assert [entry["why"] for entry in warnings if entry["event"] == "a verdict was not posted"] == [
        "review.webhook answers 404"
    ]
    assert SECRET not in str(warnings), "the URL may be a secret"


async def test_every_form_of_the_desk_posts_what_it_stores(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "neardup.db")) as db:
        commit(db, fingerprinted(1, 7), fingerprinted(2, 7), fingerprinted(3, 9), pairs=[(1, 2)])
        verify_pending(db)
        hash_of = dict(db.execute("SELECT id, text_hash FROM stories"))
        retold = MeaningFlag(1, 3, RETOLD, 0.5, [ChunkPair(0, 0, 0.7)], hash_of[1], hash_of[3])
        meaning_flags.put(db, [retold], "m")
    async with webhook_server(*[200] * 7) as (url, received):
        config = config_of(tmp_path, url)
        async with (
            open_desk(config, LOOPBACK) as parts,
            TestClient(TestServer(application(parts)), cookie_jar=CookieJar(unsafe=True)) as client,
        ):
            assert await post(client, "/name", {"name": "Asha"}) == 303
            for path, action, form_class, fields in (
                ("/pair/1/2", "/pair/1/2/verdict", "judge", {"verdict": "template"}),
                ("/pair/1/2?done=1", "/undo/1", "done", {}),
                ("/case/1", "/case/1/verdict", "judge", {"verdict": "plagiarism"}),
                ("/case/1", "/case/1/reopen", "judge", {"note": "an appeal"}),
                ("/meaning/1/3", "/meaning/1/3/verdict", "judge", {"verdict": "repost"}),
                ("/meaning/1/3", "/meaning/1/3/undo", "undone", {}),
            ):
                form = hidden_fields((await get(client, path))[1], form_class)
                assert (await send(client, action, form | fields))[0] == 303, action
    assert [(event["event"], event["verdict"], event["note"]) for event in received] == [
        ("verdict", "template", ""), ("undo", "template", ""), ("verdict", "plagiarism", ""),
        ("verdict", "reopened", "an appeal"), ("verdict", "repost", ""), ("undo", "repost", ""),
    ]  # fmt: skip


def config_of(folder: Path, webhook: str) -> Config:
    return Config(
        source=Source(manifest=Path("none.csv")),
        content=Content(url=f"file:{folder}"),
        ledger=Ledger(path=folder / "neardup.db"),
        review=Review(webhook=webhook),
    )
