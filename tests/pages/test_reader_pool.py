"""Pages read by processes: each asker gets its own page's fingerprint or error; a process that dies loses nobody's
page, and none outlives its owner.
"""

import asyncio
import os
import pickle
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import stamina
from neardup.config import Content
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.page import PageFingerprinted, PageShingled, Unreadable
from neardup.core.text.html import Extraction
from neardup.core.text.normalize import tokens
from neardup.errors import Fatal, NeardupError, Transient
from neardup.languages import LANGUAGES
from neardup.pages.reader_pool import PROCESSES, ReaderPool, _refusal
from neardup.pages.reader_process import FINGERPRINT
from neardup.pages.reader_rpc import connect_reader
from neardup.pages.results import NotModified, ReadFailed
from neardup.pages.watchdog import Record, new_record
from neardup.records import Dead, Language, Skip, Story
from neardup.retry import ATTEMPTS

from tests.support.faults.fault_proxy import Fault, Proxy, proxied
from tests.support.languages import HINDI, TAMIL, TEXTS
from tests.support.s3_server import object_server
from tests.support.servers import REGION

NOWHERE = Content(url="file:/nowhere"), Extraction()


def pids(readers: ReaderPool) -> list[int]:
    """The ids of the processes: none is a zombie."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            told = stat.read_text().rpartition(")")[2].split()
            if told[0] != "Z" and int(told[2]) in readers.groups:
                found.append(int(stat.parent.name))
    return found


def told(language: Language, n: int) -> str:
    return f"{TEXTS[language]} {TEXTS[language]} page{n}"


@asynccontextmanager
async def reading(folder: Path, most: int = 8) -> AsyncIterator[ReaderPool]:
    readers = ReaderPool(Content(url=f"file:{folder}", max_bytes=10_000), Extraction(), most)
    try:
        yield readers
    finally:
        readers.close()


def stories(folder: Path, each: int) -> list[Story]:
    made = []
    for n, language in enumerate(LANGUAGES):
        (folder / language).mkdir()
        for k in range(each):
            story = Story(n * each + k, language)
            (folder / language / f"{story.id}.html").write_text(f"<p>{told(language, story.id)}</p>", encoding="utf-8")
            made.append(story)
    return made


async def test_each_is_given_the_fingerprint_of_its_own_page(tmp_path: Path) -> None:
    asked = stories(tmp_path, 6)
    async with reading(tmp_path) as readers:
        read = await asyncio.gather(*(readers.read(story, None) for story in asked))
        seen = zip(asked, read, strict=True)
        etags = [(story, one.etag) for story, one in seen if isinstance(one, PageFingerprinted)]
        again = await asyncio.gather(*(readers.read(story, etag) for story, etag in etags))
        assert readers.computing_seconds > 0
    for story, one in zip(asked, read, strict=True):
        assert isinstance(one, PageFingerprinted)
        assert one.fingerprint == fingerprint(tokens(told(story.language, story.id))), story
    assert again == [NotModified()] * len(asked), "an unchanged page was read again"


async def test_a_page_without_a_story_has_a_named_reason(tmp_path: Path) -> None:
    (tmp_path / "short.html").write_text("<p>few words</p>")
    (tmp_path / "large.html").write_text("<p>" + "word " * 10_000)
    async with reading(tmp_path) as readers:
        for name, reason in (
            ("short", Skip.TOO_SHORT),
            ("large", Skip.TOO_LARGE),
            ("none", Skip.MISSING),
            ("still/there", Skip.MISSING),
        ):
            assert await readers.read(Story(1, HINDI, f"{name}.html"), None) == Unreadable(reason), name


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Two pages of S3, one of them large."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    (tmp_path / "1.html").write_text(f"<p>{told(Language('TAMIL'), 1)}</p>", encoding="utf-8")
    (tmp_path / "large.html").write_bytes(b"word " * 600_000)
    with object_server(tmp_path, "stories") as endpoint, proxied(endpoint) as made:
        yield made


async def test_that_a_known_page_is_gone_must_be_said_twice(proxy: Proxy) -> None:
    content = Content(url="s3://stories", endpoint=proxy.endpoint, region=REGION, path_style=True)
    story, readers = Story(1, TAMIL, "1.html"), ReaderPool(content, Extraction(), 8)
    with closing(readers):
        plain = await readers.shingled(story)
        proxy.plan({"/stories/1.html": [Fault.NOT_FOUND]})
        again = await readers.shingled(story)
        assert isinstance(plain, PageShingled) and isinstance(again, PageShingled)
        assert again.text_hash == plain.text_hash
        for ask, times in ((readers.shingled(story), 2), (readers.read(story, None), 1)):
            proxy.plan({"/stories/1.html": [Fault.NOT_FOUND] * times})
            assert await ask == Unreadable(Skip.MISSING)


async def test_what_is_here_of_a_page_is_on_record_before_it_is_computed(proxy: Proxy) -> None:
    """Or the page that is computed meanwhile would be blamed for the memory."""
    content = Content(url="s3://stories", endpoint=proxy.endpoint, region=REGION, path_style=True)
    readers = ReaderPool(content, Extraction(), 8)
    proxy.plan({"/stories/large.html": [Fault.STUCK] * 8})
    with closing(readers):
        assert await readers.read(Story(1, TAMIL, "1.html"), None)
        stuck = [asyncio.create_task(readers.read(Story(n, TAMIL, "large.html"), None)) for n in range(4)]
        while sum(one._record.held for one in readers._connections) < 4 * 1_500_000:
            assert await readers.read(Story(1, TAMIL, "1.html"), None), "others are read meanwhile"
        for task in stuck:
            task.cancel()
        await asyncio.wait(stuck)


async def test_a_process_that_dies_loses_nobody_s_page(tmp_path: Path) -> None:
    asked = stories(tmp_path, 3)
    async with reading(tmp_path) as readers:
        assert await readers.read(asked[0], None)
        with stamina.set_testing(True, attempts=ATTEMPTS):
            doomed = pids(readers)
            assert len(doomed) == PROCESSES
            tasks = [asyncio.create_task(readers.read(story, None)) for story in asked]
            await asyncio.sleep(0)
            for pid in doomed:
                os.kill(pid, signal.SIGKILL)
            results = await asyncio.gather(*tasks)
            assert all(isinstance(result, PageFingerprinted) for result in results), results
        assert not set(doomed) & set(pids(readers)), "others took their places"


async def test_what_a_process_fails_by_is_told_apart() -> None:
    async def asked_of(*messages: bytes) -> None:
        ours, theirs = socket.socketpair()
        connection = await connect_reader(ours, Record(new_record()), _refusal, NOWHERE)
        asking = asyncio.create_task(connection.ask((FINGERPRINT, "HINDI/1.html", None)))
        with Connection(theirs.detach()) as reader:
            for _ in ("what to read, and how", "what is asked"):
                await asyncio.to_thread(reader.recv)
            for message in messages:
                reader.send_bytes(message)
        try:
            await asking
        except NeardupError as error:
            assert connection.ended, "pages would go on to a process that is of no use"
            with pytest.raises(type(error)):
                await connection.ask((FINGERPRINT, "HINDI/2.html", None))
            raise

    ready = pickle.dumps((os.getpid(), (fingerprint_version.version(), True)))
    with pytest.raises(Transient, match="ended"):
        await asked_of(ready)
    with pytest.raises(Transient, match="ended"):
        await asked_of(ready, b"no pickle")
    with pytest.raises(Fatal, match="did not start"):
        await asked_of()
    with pytest.raises(Fatal, match="replaced"):
        await asked_of(pickle.dumps((os.getpid(), ("another version", True))))


async def test_a_process_nobody_wants_before_it_is_ready_has_not_failed() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        connection = await connect_reader(ours, Record(new_record()), _refusal, NOWHERE)
        asking = asyncio.create_task(connection.ask((FINGERPRINT, "HINDI/1.html", None)))
        await asyncio.sleep(0)
        connection.close()
        with pytest.raises(Transient, match="no more is read"):
            await asking


async def test_nothing_is_imported_from_where_the_run_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('a stranger was imported')")
    monkeypatch.chdir(tmp_path)
    [story, *_] = stories(tmp_path, 1)
    async with reading(tmp_path) as readers:
        assert await readers.read(story, None)


async def test_more_errors_than_a_socket_holds_come_back(tmp_path: Path) -> None:
    """While the event loop is busy, and nobody reads them: both ends write, and neither may wait for the other."""
    asked = [Story(n, HINDI, f"{f'{n:0200}/' * 10}page.html") for n in range(2000)]
    async with reading(tmp_path, most=2000) as readers:
        readers.concurrency.limit = len(asked)
        told = await asyncio.gather(*(readers.read(story, None) for story in asked), return_exceptions=True)
    assert set(told) == {Unreadable(Skip.MISSING)}


async def test_no_process_outlives_its_owner(tmp_path: Path) -> None:
    asked = stories(tmp_path, 1)
    async with reading(tmp_path) as readers:
        assert await readers.read(asked[0], None)
        started = pids(readers)
        assert len(started) == PROCESSES
        waiting = asyncio.create_task(readers.read(asked[1], None))
        await asyncio.sleep(0)
    with stamina.set_testing(True, attempts=1):
        assert await waiting == ReadFailed(Dead.STORE_ERROR, "no more is read")
    assert not pids(readers), f"of {started} some are left"
