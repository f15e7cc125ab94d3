"""A ledger that is restored or moved away under running processes: what they say they stored is in the file that has
its name, and no file is made while there is none.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from neardup.app import App, open_app, open_service_parts
from neardup.config import Config
from neardup.config.schedule import parse_schedule
from neardup.errors import Fatal, LedgerReplaced
from neardup.ledger import Ledger, connect, files, read, runs, verdicts
from neardup.moderation.desk.parts import Connections
from neardup.ops import service
from neardup.ops.backup import back_up
from neardup.serve import service as serve_service
from neardup.serve.service import ServiceParts
from neardup.telemetry.log import log

from tests.support.builders import commit, fingerprinted, verify_pending
from tests.support.desk_client import hidden_fields, named_client, send
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.servers import free_port
from tests.support.service import configuration, http_service

FILES = ("", "-wal", "-shm")
SECONDS = 60  # to wait at most for what must happen


class Waits:
    """A log that also counts the lines by which a service says that it cannot open its ledger yet."""

    def __init__(self) -> None:
        self._lines = asyncio.Queue[str]()
        self.said = list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(log, name)

    def warning(self, event: str, **fields: Any) -> None:
        log.warning(event, **fields)
        if event in {"waiting", "the service waits"}:
            self._lines.put_nowait(event)
            self.said.append(str(fields))

    async def for_two(self) -> None:
        """Wait until two further attempts have failed."""
        async with asyncio.timeout(SECONDS):
            for _ in range(2):
                await self._lines.get()


def move_away(ledger: Path) -> None:
    """As the runbook says."""
    for ending in FILES:
        path = ledger.with_name(ledger.name + ending)
        if path.exists():
            path.rename(path.with_name(f"away{ending}"))


def restore(ledger: Path, copy: Path) -> None:
    move_away(ledger)
    copy.rename(ledger)


def stored(ledger: Path) -> set[int]:
    with closing(connect(ledger)) as db:
        return {story_id for (story_id,) in db.execute("SELECT id FROM stories")}


async def test_each_call_notices_and_a_later_one_never_writes_to_the_old_file(tmp_path: Path) -> None:
    path, copy = tmp_path / "neardup.db", tmp_path / "copy.db"
    with closing(Ledger(path)) as ledger:
        await ledger.do(runs.put, "key", "old")
        back_up(path, copy)
        await ledger.do(runs.put, "key", "newer")

        def restored_meanwhile(db: object) -> None:
            restore(path, copy)

        for work in (restored_meanwhile, lambda _: pytest.fail("the old file is still written to")):
            with pytest.raises(LedgerReplaced, match="was replaced by another file"):
                await ledger.do(work)
    with closing(connect(path)) as db:
        assert runs.get(db, "key") == "old"


async def test_a_process_of_a_former_version_writes_nothing_to_an_upgraded_ledger(tmp_path: Path) -> None:
    path = tmp_path / "neardup.db"
    with closing(Ledger(path)) as ledger, closing(Ledger(path, read)) as reader, closing(Connections(path)) as desk:
        with closing(connect(path)) as later:
            later.execute("PRAGMA user_version = 99")
        for do in (ledger.do, reader.do):
            with pytest.raises(LedgerReplaced, match="another schema now: 99"):
                await do(lambda _: pytest.fail("it works on a ledger that it does not know"))
        for do in (desk.read, desk.write):  # which open it again
            with pytest.raises(Fatal, match="written by a newer neardup"):
                await do(lambda _: pytest.fail("it works on a ledger that it does not know"))


async def test_a_file_beside_the_log_of_another_one_is_not_opened(tmp_path: Path) -> None:
    """SQLite would read the pages of the log as those of the file."""
    path, copy = tmp_path / "neardup.db", tmp_path / "copy.db"
    with closing(Ledger(path)) as ledger:
        back_up(path, copy)
        await ledger.do(runs.put, "key", "newer")
        copy.rename(path)
        with pytest.raises(LedgerReplaced, match="beside the log of the former one: stop neardup, move "):
            ledger.refuse_successor()
        files.name_log_file(path).rename(tmp_path / "away-wal")
        ledger.refuse_successor()


async def test_the_service_stores_what_it_answers_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_row: Callable[[Row], None]
) -> None:
    monkeypatch.setattr(serve_service, "OPEN_RETRY_SECONDS", 0.1)
    waits, opened = Waits(), asyncio.Queue[ServiceParts]()
    monkeypatch.setattr(serve_service, "log", waits)

    @asynccontextmanager
    async def opening(config: Config) -> AsyncIterator[ServiceParts]:
        async with open_service_parts(config) as parts:
            opened.put_nowait(parts)
            yield parts

    config, copy = configuration(tmp_path, deadline_seconds=30), tmp_path / "copy.db"
    ledger = config.ledger.path
    texts = {n: (language, STORIES[language][0]) for n, language in enumerate(SAMPLED, 1)}
    async with http_service(config, opening) as (client, _):
        await asyncio.wait_for(opened.get(), SECONDS)

        async def put(story_id: int) -> int:
            language, text = texts[story_id]
            async with client.put(f"/v1/stories/{story_id}", json={"language": language, "text": text}) as answer:
                return answer.status

        assert await put(1) == 200
        back_up(ledger, copy)
        assert await put(2) == 200
        move_away(ledger)
        answered = [await put(3) for _ in range(3)]
        assert answered == [503] * 3, "the story went to a file that is away"
        await waits.for_two()
        assert not ledger.exists(), "an empty ledger was made where one is about to be restored"
        copy.rename(ledger)
        await asyncio.wait_for(opened.get(), SECONDS)
        assert await put(3) == 200
    assert stored(ledger) == {1, 3}
    said, lost = Said("503 unavailable", answered.count(503)), len({1, 3} - stored(ledger))
    record_row(make_row("serve: the ledger moved away and restored", 3, said, in_flight=1, lost=lost))


async def test_a_verdict_is_stored_where_the_desk_says(tmp_path: Path, record_row: Callable[[Row], None]) -> None:
    ledger, copy = tmp_path / "neardup.db", tmp_path / "copy.db"
    with closing(connect(ledger)) as db:
        commit(db, fingerprinted(1, 7), fingerprinted(2, 7), pairs=[(1, 2)])
        verify_pending(db)
    back_up(ledger, copy)
    async with named_client(tmp_path) as client:
        async with client.get("/pair/1/2") as answer:
            form = hidden_fields(await answer.text()) | {"verdict": "template"}
        restore(ledger, copy)
        statuses = [(await send(client, "/pair/1/2/verdict", form))[0] for _ in range(2)]
        assert statuses == [503, 303], "the verdict went to a file that is away, or the desk does not open the new one"
        with closing(connect(ledger)) as db:
            assert [row["verdict"] for row in verdicts.list_of_pair(db, 1, 2)] == ["template"]
    record_row(make_row("desk: the ledger replaced", 1, Said("503 unavailable", statuses.count(503))))


async def test_the_daemon_opens_the_file_that_replaced_its_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_row: Callable[[Row], None]
) -> None:
    monkeypatch.setattr(service, "REFRESH_SECONDS", 0.05)
    monkeypatch.setattr(service, "OPEN_RETRY_SECONDS", 0.05)
    ledger, copy, stop = tmp_path / "neardup.db", tmp_path / "copy.db", asyncio.Event()
    config = configuration(tmp_path)
    with closing(connect(ledger)) as db:
        runs.finish(db, runs.begin(db, "daily"), "done", counts={}, watermark=1)
    waits, opened = Waits(), asyncio.Queue[App]()
    monkeypatch.setattr(service, "log", waits)

    @asynccontextmanager
    async def noting(config: Config) -> AsyncIterator[App]:
        async with open_app(config) as app:
            opened.put_nowait(app)
            yield app

    daemon = service.Service(ledger, f"127.0.0.1:{free_port()}", parse_schedule("03:00"), lambda: noting(config), stop)
    running = asyncio.create_task(daemon.run())
    await asyncio.wait_for(opened.get(), SECONDS)
    back_up(ledger, copy)
    move_away(ledger)
    await waits.for_two()
    assert (opened.qsize(), ledger.exists()) == (0, False), "an empty ledger was made where one is about to be restored"
    copy.rename(ledger)
    await asyncio.wait_for(opened.get(), SECONDS)
    stop.set()
    await running
    said = Said("waiting: ledger", int(any("ledger" in fields for fields in waits.said)))
    record_row(make_row("daemon: the ledger moved away and restored", 1, said))
