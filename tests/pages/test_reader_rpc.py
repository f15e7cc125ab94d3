"""Laws: a reader process is used once it greets; each failure of one has its own error."""

import asyncio
import os
import pickle
import socket
from multiprocessing.connection import Connection

import pytest
from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.text.extraction import Extraction
from neardup.errors import Fatal, NeardupError, Transient
from neardup.pages.reader_process import FINGERPRINT, Request
from neardup.pages.reader_rpc import Failures, ReaderConnection, connect_reader
from neardup.pages.reader_start import _reason_to_refuse
from neardup.pages.watchdog import Record, new_record, record_pid

NOWHERE = Content(url="file:/nowhere"), Extraction(), None, None


def record_of_this_process() -> Record:
    descriptor = new_record()
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
        connection = await connect_reader(pool_end, record_of_this_process(), _reason_to_refuse, NOWHERE)
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
    connection = await connect_reader(pool_end, record_of_this_process(), _reason_to_refuse, NOWHERE)
    with Connection(reader_end.detach()) as reader:
        if greets:
            reader.send_bytes(pickle.dumps(fingerprint_version.version()))
            assert await connection.started()
    if not greets:
        assert not await connection.started(), "a process that sent no greeting is used"
    connection.close()


async def test_closing_a_process_that_starts_is_no_failure_of_it() -> None:
    pool_end, reader_end = socket.socketpair()
    with reader_end:
        connection = await connect_reader(pool_end, record_of_this_process(), _reason_to_refuse, NOWHERE)
        answer = asyncio.create_task(ask(connection, "HINDI/1.html"))
        await asyncio.sleep(0)
        connection.close()
        with pytest.raises(Transient, match="the reader pool is closed"):
            await answer
