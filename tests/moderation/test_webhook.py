"""The webhook: the posted summary, retries, and errors that keep the URL secret."""

import asyncio
import multiprocessing
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import neardup
import numpy as np
import pytest
import stamina
import structlog
from aiohttp import CookieJar
from aiohttp.test_utils import TestClient, TestServer
from neardup.app import open_desk
from neardup.config import Config, Content, Export, Ledger, Source
from neardup.config.section import Secret
from neardup.config.sections import Review, Webhook
from neardup.core.verify.tiers import PARTIAL, RETOLD
from neardup.errors import NeardupError, Transient
from neardup.ledger import Ledger as OpenLedger
from neardup.ledger import connect, flags, meaning_flags, now_ms, runs, similarities, verdicts, webhook_events
from neardup.ledger.meaning_flags import ChunkPair, MeaningFlag
from neardup.ledger.stories import remove_all
from neardup.moderation.desk.app import make_application
from neardup.moderation.webhook import notify_embedding, notify_webhook, post_due_events, subscribe
from neardup.records import Verdict

from tests.support.builders import commit, fingerprinted, flag_pair, flag_spans, ledger_in_memory, verify_pending
from tests.support.desk_client import LOOPBACK, get, hidden_fields, post, send
from tests.support.servers import free_port
from tests.support.small_servers import SECRET, Messages, webhook_server

FACTS = {"listed": 12_000, "fingerprinted": 9000, "flagged": {"exact": 3, "near": 1204}, "seconds": 8.5, "warnings": {}}


TEXTS = (
    "neardup: Asha decided plagiarism, stories 1 and 2",
    "neardup: Asha decided template, stories 1 and 2",
    "neardup: Ravi undid template, stories 1 and 2",
)
OLD, NEW, UNKNOWN = (f"whsec_{letter * 32}" for letter in "abc")


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
    async with webhook_server(200, 404, 200, 200) as (url, received), open_ledger(tmp_path, url) as (ledger, config):
        await decide(ledger, Verdict.PLAGIARISM)
        done = await decide(ledger, Verdict.TEMPLATE)
        await ledger.do(verdicts.undo, done, "Ravi", await ledger.do(verdicts.identify_state, [1]))
        await post_due_events(ledger.do, config)
        assert await ledger.do(webhook_events.count) == (1, 0)
        await post_due_events(ledger.do, config, in_a_minute)
        assert await ledger.do(webhook_events.count) == (0, 0)
        log = [event | {"text": text} for event, text in zip(await ledger.do(list_events), TEXTS, strict=True)]
    assert received == [log[0], log[1], log[2], log[1]], "in order, but for one that was refused"
    assert [entry["why"] for entry in warnings] == ["review.webhook answers 404"]
    assert SECRET not in str(warnings), "the URL may be a secret"


async def test_a_message_is_verified_by_either_of_two_secrets(tmp_path: Path) -> None:
    messages: Messages = []
    async with webhook_server(200, messages=messages) as (url, _), open_ledger(tmp_path, url, NEW, OLD) as opened:
        ledger, config = opened
        await decide(ledger, Verdict.PLAGIARISM)
        await post_due_events(ledger.do, config)
    [(body, headers)] = messages
    for secret in (OLD, NEW):
        assert neardup.verify_webhook(body, headers, secret)["verdict"] == "plagiarism"
    with pytest.raises(neardup.InvalidSignature, match="no signature is by one of the secrets"):
        neardup.verify_webhook(body, headers, UNKNOWN)


async def test_new_flags_are_posted_once_a_story_and_old_ones_never(tmp_path: Path) -> None:
    async with webhook_server(200, 200) as (url, received), open_ledger(tmp_path, url) as (ledger, config):
        for earlier, later in ((3, 9), (4, 9), (3, 4)):
            await ledger.do(flag_pair, earlier, later)
        await ledger.do(commit, *(fingerprinted(story_id, story_id) for story_id in (1, 2, 5)))
        for earlier, start in ((1, 0), (2, 2)):
            await ledger.do(flag_spans, earlier, 5, PARTIAL, *2 * [np.array([(start, start + 2)], np.int32)])
        for _ in range(2):
            await post_due_events(ledger.do, config)
        of_stories = await ledger.do(similarities.read_similarities, [4, 5, 9])
    [of_one, of_part, event] = sorted(received, key=lambda event: event["story_id"])
    assert 0 < of_part["similarity"] == of_stories[5] < 1, (
        "it is what all sources have of the story, not the similarity of one pair"
    )
    assert (of_one["story_id"], [match["id"] for match in of_one["matches"]]) == (4, [3])
    assert (event["event"], event["story_id"], event["language"]) == ("flags", 9, "HINDI")
    assert sorted(match["id"] for match in event["matches"]) == [3, 4]
    assert event["text"].startswith("neardup: story 9 has 2 new flags (")


@pytest.mark.parametrize(("is_edited", "leaves_sweep"), [(True, False), (False, False), (False, True)])
def test_a_flag_that_is_made_again_is_posted_again_unless_all_stories_are_fingerprinted_again(
    is_edited: bool, leaves_sweep: bool
) -> None:
    with closing(ledger_in_memory()) as db:
        webhook_events.subscribe(db, [webhook_events.FLAGS])
        for step in ("flagged", "withdrawn", "flagged again", "verified again"):
            if step == "withdrawn":
                commit(db, fingerprinted(2, 99)) if is_edited else remove_all(db, "v2", "")
                if leaves_sweep:  # as a backfill without lookups does, when it has ended
                    db.execute("DELETE FROM meta WHERE key = 'refingerprinting'")
                    runs.owe_sweep(db, owed=True)
            else:
                flag_pair(db, 1, 2)
            webhook_events.collect_flags(db, same_author=False)
            if step == "flagged again":
                db.execute("UPDATE flags SET estimated = 1")
        assert flags.count(db) == 1
        assert webhook_events.count(db) == (1 + is_edited, 0)


async def test_flags_of_several_transactions_are_posted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_events, "FLAGS_AT_ONCE", 2)
    async with webhook_server(*[200] * 5) as (url, received), open_ledger(tmp_path, url) as (ledger, config):
        for later in range(11, 16):
            await ledger.do(flag_pair, 10, later)
        await post_due_events(ledger.do, config)
    assert [event["story_id"] for event in received] == [11, 12, 13, 14, 15]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
async def test_a_kill_loses_no_event(tmp_path: Path) -> None:
    """The process is killed while the webhook has the event and has not answered: it is posted again, and once."""
    async with open_ledger(tmp_path, "http://127.0.0.1:1/") as (ledger, config):
        await decide(ledger, Verdict.PLAGIARISM)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

    def post_and_die() -> None:
        with closing(connect(tmp_path / "neardup.db")) as db:
            asyncio.run(post_due_events(partial(do_on, db), config_of(tmp_path, url)))

    process = multiprocessing.get_context("fork").Process(target=post_and_die)
    process.start()
    with listener, listener.accept()[0] as connection:
        assert connection.recv(4_096).startswith(b"POST / ")
        process.kill()
        process.join()
    assert process.exitcode == -signal.SIGKILL
    async with webhook_server(200) as (again, received), open_ledger(tmp_path, again) as opened:
        ledger, config = opened
        await post_due_events(ledger.do, config)
        assert received == [], "an event was posted while another process may be posting it"
        await post_due_events(ledger.do, config, in_a_minute)
        await post_due_events(ledger.do, config, in_a_minute)
        assert [event["verdict"] for event in received] == ["plagiarism"]
        assert await ledger.do(webhook_events.count) == (0, 0)


async def test_an_event_that_is_never_taken_is_dead_by_name(tmp_path: Path, warnings: list[Any]) -> None:
    async with open_ledger(tmp_path, f"http://127.0.0.1:{free_port()}/{SECRET}") as (ledger, config):
        await decide(ledger, Verdict.PLAGIARISM)
        times = list[int]()
        while (await ledger.do(webhook_events.count))[0]:
            times.append(await ledger.do(due_at))
            await post_due_events(ledger.do, config, lambda: times[-1])
        assert await ledger.do(webhook_events.count) == (0, 1)
    waits = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) == webhook_events.MOST_ATTEMPTS
    assert waits == sorted(waits) and sum(waits) > 36 * 3_600_000, "it gives up within a day and a half"
    assert warnings[-1]["event"] == "an event of a webhook is dead"
    assert warnings[-1]["why"].startswith("review.webhook does not answer")


async def test_without_a_webhook_no_event_is_kept(tmp_path: Path) -> None:
    async with open_ledger(tmp_path, "http://127.0.0.1:1/") as (ledger, _):
        await decide(ledger, Verdict.PLAGIARISM)
        await subscribe(ledger.do, config_of(tmp_path, ""))
        await decide(ledger, Verdict.TEMPLATE)
        await ledger.do(flag_pair, 3, 9)
        await post_due_events(ledger.do, config_of(tmp_path, ""))
        assert await ledger.do(webhook_events.count) == (0, 0)


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
            TestClient(TestServer(make_application(parts)), cookie_jar=CookieJar(unsafe=True)) as client,
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
            await post_due_events(parts.ledger.write, config)
    assert [(event["event"], event["verdict"], event["note"]) for event in received] == [
        ("verdict", "template", ""), ("undo", "template", ""), ("verdict", "plagiarism", ""),
        ("verdict", "reopened", "an appeal"), ("verdict", "repost", ""), ("undo", "repost", ""),
    ]  # fmt: skip


async def do_on(db: sqlite3.Connection, work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return work(db, *args, **kwargs)


def in_a_minute() -> int:
    return now_ms() + 61_000


def due_at(db: sqlite3.Connection) -> int:
    due: int = db.execute("SELECT due_at FROM webhook_events").fetchone()[0]
    return due


def list_events(db: sqlite3.Connection) -> list[verdicts.Event]:
    return list(verdicts.list_events_since(db))


async def decide(ledger: OpenLedger, verdict: Verdict) -> int:
    seen = await ledger.do(verdicts.identify_state, [1])
    return await ledger.do(verdicts.decide, [1], verdict, "नोट", "Asha", seen)


@asynccontextmanager
async def open_ledger(folder: Path, url: str, *secrets: str) -> AsyncIterator[tuple[OpenLedger, Config]]:
    """A ledger with the flag of stories 1 and 2, made before its events were asked for."""
    with closing(OpenLedger(folder / "neardup.db")) as ledger:
        if not await ledger.do(verdicts.list_flags, 1):
            await ledger.do(flag_pair, 1, 2)
        config = config_of(folder, url, *secrets)
        await subscribe(ledger.do, config)
        yield ledger, config


def config_of(folder: Path, webhook: str, *secrets: str) -> Config:
    return Config(
        source=Source(manifest=Path("none.csv")),
        content=Content(url=f"file:{folder}"),
        ledger=Ledger(path=folder / "neardup.db"),
        review=Review(webhook=webhook),
        webhook=Webhook(flags=webhook, secrets=tuple(map(Secret, secrets))),
    )
