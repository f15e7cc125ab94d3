"""Laws: a reader process is used once it greets; each failure of one has its own error."""

import asyncio
import os
import pickle
import socket
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.text.extraction import Extraction
from neardup.core.verify.text import Text
from neardup.errors import Fatal, NeardupError, Transient
from neardup.pages import reader_process
from neardup.pages.reader_process import ANSWER_BYTES, ANSWERS_PER_MESSAGE, COMPARE, FINGERPRINT, Request, Settings
from neardup.pages.reader_rpc import Failures, ReaderConnection, connect_reader
from neardup.pages.store import Files, PlainContent
from neardup.pages.watchdog import Record, create_record, record_pid

from tests.support.languages import TAMIL, TEXTS

NOWHERE = Content(url="file:/nowhere"), Extraction(), None, None


def record_of_this_process() -> Record:
    descriptor = create_record()
    record_pid(descriptor, os.getpid())
    return Record(descriptor)


async def ask(connection: ReaderConnection, page: str) -> None:
    """Ask for a page.  Raises the failure."""
    async for answers in connection.ask(Request(FINGERPRINT, [page]), [None]):
        assert isinstance(answers, Failures)
        raise answers[0]


async def test_each_failure_of_a_process_has_its_own_error() -> None:
    async def ask_process_that_sends(*messages: bytes) -> None:
        pool_end, reader_end = socket.socketpair()
        connection = await connect_reader(pool_end, record_of_this_process(), fingerprint_version.version(), NOWHERE)
        answer = asyncio.create_task(ask(connection, "HINDI/1.html"))
        with Connection(reader_end.detach()) as reader:
            for _ in ("settings", "requests"):
                await asyncio.to_thread(reader.recv)
            for message in messages:
                reader.send_bytes(message)
        try:
            await answer
        except NeardupError as error:
            assert connection.ended, "the pool would send more pages to a useless process"
            with pytest.raises(type(error)):
                await ask(connection, "HINDI/2.html")
            raise

    ready = pickle.dumps(fingerprint_version.version())
    with pytest.raises(Transient, match="ended"):
        await ask_process_that_sends(ready)
    with pytest.raises(Transient, match="ended"):
        await ask_process_that_sends(ready, b"no pickle")
    with pytest.raises(Fatal, match="replaced"):
        await ask_process_that_sends(pickle.dumps("another version"))


@pytest.mark.parametrize("greets", [False, True])
async def test_a_process_is_started_once_it_greets(greets: bool) -> None:
    pool_end, reader_end = socket.socketpair()
    connection = await connect_reader(pool_end, record_of_this_process(), fingerprint_version.version(), NOWHERE)
    with Connection(reader_end.detach()) as reader:
        if greets:
            reader.send_bytes(pickle.dumps(fingerprint_version.version()))
            assert await connection.wait_until_started()
    if not greets:
        assert not await connection.wait_until_started(), "a process that sent no greeting is used"
    connection.close()


async def test_closing_a_process_that_starts_is_no_failure_of_it() -> None:
    pool_end, reader_end = socket.socketpair()
    with reader_end:
        connection = await connect_reader(pool_end, record_of_this_process(), fingerprint_version.version(), NOWHERE)
        answer = asyncio.create_task(ask(connection, "HINDI/1.html"))
        await asyncio.sleep(0)
        connection.close()
        with pytest.raises(Transient, match="the reader pool is closed"):
            await answer


async def answer(folder: Path, request: Request) -> list[list[int]]:
    """The places of the pages that each message of a process answers; it reads files of a folder."""
    pool_end, reader_end = socket.socketpair()
    settings = Settings(PlainContent.of(Content(url=f"file:{folder}")), Extraction(), None, None)
    process = reader_process._ReaderProcess(Connection(reader_end.detach()), record_of_this_process(), settings)
    serving = asyncio.create_task(asyncio.to_thread(process.serve))
    messages = list[list[int]]()
    with Connection(pool_end.detach()) as owner:
        owner.send([(0, request)])
        while sum(map(len, messages)) < len(request.pages):
            parts, _ = await asyncio.to_thread(owner.recv)
            messages.append([place for _, answers in parts for place in answers.places])
    with pytest.raises(EOFError):
        await serving
    assert sorted(chain.from_iterable(messages)) == list(range(len(request.pages))), "a page has no answer, or two"
    return messages


async def test_a_process_has_no_more_pages_in_hand_than_it_may_fetch_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, in_hand = [f"{n}.html" for n in range(20)], list[int]()
    for path in paths[::2]:
        (tmp_path / path).write_text(f"<p>{TEXTS[TAMIL]} {TEXTS[TAMIL]}</p>", encoding="utf-8")

    class CountedFiles(Files):
        def begin(self, get: Any) -> None:
            super().begin(get)
            in_hand.append(self.under_way)

    monkeypatch.setattr(reader_process, "open_transfers", lambda _, control_socket: CountedFiles(control_socket))
    await answer(tmp_path, Request(FINGERPRINT, paths, most=3))
    assert max(in_hand) == 3


async def test_a_process_holds_few_long_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "SECONDS_BETWEEN_LOOKS", 0.0)
    paths = [f"{n}.html" for n in range(ANSWERS_PER_MESSAGE)]
    for path in paths:
        (tmp_path / path).write_text(" ".join(map(str, range(20_000))), encoding="utf-8")
    messages = await answer(tmp_path, Request(COMPARE, paths, most=len(paths)))
    most = ANSWERS_PER_MESSAGE * ANSWER_BYTES // Text((tmp_path / paths[0]).read_text()).nbytes + 1
    assert max(map(len, messages)) <= most < ANSWERS_PER_MESSAGE
