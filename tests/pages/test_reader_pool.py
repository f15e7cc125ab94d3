"""Laws: each caller receives the result of its own page; a reader process that dies loses no page, and none outlives
its pool.

Laws of pages at hand: they read as pages of the store do, in every language; a hostile one harms no other page.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, suppress
from multiprocessing import Pipe
from pathlib import Path

import numpy as np
import pytest
import stamina
from neardup.config import Content
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.languages import LANGUAGES
from neardup.core.page import Page, PageFingerprinted, PageStory, Unreadable, extract_story
from neardup.core.text.extraction import Extraction
from neardup.core.text.normalize import tokenize
from neardup.core.verify.text import Text
from neardup.errors import Gone
from neardup.pages import fork_server, watchdog
from neardup.pages.limits import AdaptiveLimit
from neardup.pages.reader_pool import PROCESSES, ReaderPool
from neardup.pages.reader_process import OPERATIONS, Request, Settings, _ReaderProcess
from neardup.pages.results import NotModified, ReadFailed, TextResult
from neardup.pages.store import File, PlainContent
from neardup.pages.watchdog import Record, create_record
from neardup.records import Dead, Language, Limit, Mark, MarkReason, Skip, Story
from neardup.retry import ATTEMPTS
from neardup.telemetry.metrics import PAGES_RENDERED, read_stage_seconds
from structlog.testing import capture_logs

from tests.support.faults.fault_proxy import Fault, Proxy, proxied
from tests.support.forked_readers import ends_within
from tests.support.languages import HINDI, TAMIL, TEXTS
from tests.support.s3_server import object_server
from tests.support.servers import REGION

GIVE_UP_SECONDS = 10.0


def reader_pids(pool: ReaderPool) -> set[int]:
    """The ids of the running reader processes of a pool, without those that have ended since it last looked."""
    found = set()
    for pid in pool.pids:
        with suppress(OSError):
            if "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]:
                found.add(pid)
    return found


def story_text(language: Language, n: int) -> str:
    return f"{TEXTS[language]} {TEXTS[language]} page{n}"


@asynccontextmanager
async def reading(folder: Path, most: int = 8) -> AsyncIterator[ReaderPool]:
    async with aclosing(ReaderPool(Content(url=f"file:{folder}", max_bytes=10_000), Extraction(), most)) as pool:
        yield pool


async def read_to_compare(pool: ReaderPool, listed: list[Story]) -> list[TextResult]:
    """What reading these stories together gives of each."""
    delivered = list[tuple[int, TextResult]]()
    await pool.read_to_compare(listed, lambda story, result: delivered.append((story.id, result)))
    results = dict(delivered)
    assert len(results) == len(delivered), "a text is delivered twice"
    return [results[story.id] for story in listed]


def stories(folder: Path, each: int) -> list[Story]:
    made = []
    for n, language in enumerate(LANGUAGES):
        (folder / language).mkdir()
        for k in range(each):
            story = Story(n * each + k, language)
            (folder / language / f"{story.id}.html").write_text(
                f"<p>{story_text(language, story.id)}</p>", encoding="utf-8"
            )
            made.append(story)
    return made


async def test_each_caller_receives_its_own_page_s_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    latencies, began = list[float](), time.perf_counter()
    monkeypatch.setattr(AdaptiveLimit, "observe", lambda _, seconds: latencies.extend(seconds))
    listed = stories(tmp_path, 6)
    async with reading(tmp_path) as pool:
        results = await asyncio.gather(*(pool.read(story, None) for story in listed))
        pairs = zip(listed, results, strict=True)
        etags = [(story, result.etag) for story, result in pairs if isinstance(result, PageFingerprinted)]
        again = await asyncio.gather(*(pool.read(story, etag) for story, etag in etags))
    for story, result in zip(listed, results, strict=True):
        assert isinstance(result, PageFingerprinted)
        assert result.fingerprint == fingerprint(tokenize(story_text(story.language, story.id))), story
    assert again == [NotModified()] * len(listed), "an unchanged page was read again"
    assert len(latencies) == 2 * len(listed) and 0 <= min(latencies) <= max(latencies) <= time.perf_counter() - began


async def test_texts_that_are_read_together_come_back_when_a_process_dies(tmp_path: Path) -> None:
    listed = stories(tmp_path, 6)
    gone = Story(len(listed), HINDI, "none.html")
    async with reading(tmp_path) as pool:
        assert await pool.read(listed[0], None)
        with stamina.set_testing(True, attempts=ATTEMPTS):
            together = asyncio.create_task(read_to_compare(pool, [gone, *listed]))
            await asyncio.sleep(0)
            for pid in reader_pids(pool):
                os.kill(pid, signal.SIGKILL)
            first, *results = await together
    assert first == Unreadable(Skip.MISSING)
    for story, result in zip(listed, results, strict=True):
        expected = fingerprint(tokenize(story_text(story.language, story.id))).text_hash
        assert isinstance(result, Text) and result.text_hash == expected, story


async def test_a_page_without_a_story_has_a_named_reason(tmp_path: Path) -> None:
    (tmp_path / "short.html").write_text("<p>few words</p>")
    async with reading(tmp_path) as pool:
        for name, reason in (("short", Skip.TOO_SHORT), ("none", Skip.MISSING), ("still/there", Skip.MISSING)):
            assert await pool.read(Story(1, HINDI, f"{name}.html"), None) == Unreadable(reason), name


def counted() -> tuple[float, float, float]:
    """How many pages were extracted so far, and how many of them the library in C and Python rendered."""
    [rendered] = PAGES_RENDERED.collect()
    totals = [sample for sample in rendered.samples if sample.name.endswith("_total")]
    native, python = (sum(total.value for total in totals if total.labels["by"] == by) for by in ("native", "python"))
    return read_stage_seconds()["extract"][-2], native, python  # all up to the last bound of the histogram


async def test_pages_that_are_rendered_are_counted_among_those_extracted_by_what_rendered_them(tmp_path: Path) -> None:
    text, concealed = story_text(HINDI, 1), "<p style='display: none'>words that no reader sees</p>"
    pages = {
        "plain": f"<p>{text}</p>",
        "native": f"<p>{text}</p>{concealed}",
        "python": f"<p>{text}</p><svg><text>drawn</text></svg>",
        "short": f"<p>few</p>{concealed}",
    }
    for name, page in pages.items():
        (tmp_path / f"{name}.html").write_text(page, encoding="utf-8")
    before = counted()
    async with reading(tmp_path) as pool:
        read = {name: await pool.read(Story(1, HINDI, f"{name}.html"), None) for name in (*pages, "missing")}
    roads = {
        name: page.rendered and page.rendered.by for name, page in read.items() if isinstance(page, PageFingerprinted)
    }
    assert roads == {"plain": None, "native": "native", "python": "python"}
    assert tuple(np.subtract(counted(), before)) == (4, 2, 1), (
        "the share needs every page that was extracted, a short one too, and no other"
    )


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """Two pages in S3, one of them large, behind a proxy that injects faults."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    (tmp_path / "1.html").write_text(f"<p>{story_text(TAMIL, 1)}</p>", encoding="utf-8")
    (tmp_path / "large.html").write_bytes(b"word " * 600_000)
    with object_server(tmp_path, "stories") as endpoint, proxied(endpoint) as made:
        yield made


async def test_a_known_page_is_gone_only_after_two_answers(proxy: Proxy) -> None:
    content = Content(url="s3://stories", endpoint=proxy.endpoint, region=REGION, path_style=True)
    story = Story(1, TAMIL, "1.html")
    async with aclosing(ReaderPool(content, Extraction(), 8)) as pool:
        [before] = await read_to_compare(pool, [story])
        proxy.plan({"/stories/1.html": [Fault.NOT_FOUND]})
        [after] = await read_to_compare(pool, [story])
        assert isinstance(before, Text) and isinstance(after, Text)
        assert after.text_hash == before.text_hash
        for reading_it, answers in ((pool.read_text(story), 2), (pool.read(story, None), 1)):
            proxy.plan({"/stories/1.html": [Fault.NOT_FOUND] * answers})
            assert await reading_it == Unreadable(Skip.MISSING)


@pytest.mark.parametrize(
    ("answers", "repeated"),
    [
        ([Fault.NOT_FOUND, Fault.NOT_FOUND], []),
        ([Fault.NOT_FOUND, Fault.NONE], ["404"]),
        ([Fault.NOT_FOUND, Fault.INTERNAL, Fault.NOT_FOUND, Fault.NOT_FOUND], ["404", "500"]),
    ],
)
async def test_a_loss_is_reported_unless_the_store_confirms_it(
    proxy: Proxy, answers: list[Fault], repeated: list[str]
) -> None:
    content = Content(url="s3://stories", endpoint=proxy.endpoint, region=REGION, path_style=True)
    async with aclosing(ReaderPool(content, Extraction(), 8)) as pool:
        proxy.plan({"/stories/1.html": answers})
        with capture_logs() as lines, stamina.set_testing(True, attempts=ATTEMPTS):
            await pool.read_text(Story(1, TAMIL, "1.html"))
    whys = [line["why"] for line in lines if line["event"] == "trying again"]
    assert [why.partition(": ")[2].split()[0] for why in whys] == repeated, whys


def test_a_file_that_is_gone_is_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for = list[str]()

    def result(file: File) -> None:
        looked_for.append(file.url)
        raise Gone(file.url)

    monkeypatch.setattr(File, "result", result)
    owner, end = Pipe()
    content = PlainContent.of(Content(url=f"file:{tmp_path}"))
    process = _ReaderProcess(end, Record(create_record()), Settings(content, Extraction(), None, None))
    with ThreadPoolExecutor() as thread, owner:  # which ends the thread when it is closed
        serving = thread.submit(process.serve)
        for operation in OPERATIONS:
            owner.send([(0, Request(operation, ["none.html"]))])
            [(_, answers)], _ = owner.recv()
            assert isinstance(answers.others[0], Gone), operation
            assert (len(looked_for), answers.repeats) == (1, []), operation
            looked_for.clear()
    assert isinstance(serving.exception(), EOFError)


async def test_bodies_being_fetched_are_on_record(proxy: Proxy) -> None:
    """Otherwise the watchdog would blame their memory on the page that is computed meanwhile."""
    content = Content(url="s3://stories", endpoint=proxy.endpoint, region=REGION, path_style=True)
    proxy.plan({"/stories/large.html": [Fault.STUCK] * 8})
    async with aclosing(ReaderPool(content, Extraction(), 8)) as pool:
        assert await pool.read(Story(1, TAMIL, "1.html"), None)
        stuck = [asyncio.create_task(pool.read(Story(n, TAMIL, "large.html"), None)) for n in range(4)]
        while sum(connection._record.body_bytes for connection in pool._connections) < 4 * 1_500_000:
            assert await pool.read(Story(1, TAMIL, "1.html"), None), "other pages must be read meanwhile"
        for task in stuck:
            task.cancel()
        await asyncio.wait(stuck)


async def test_a_reader_process_that_dies_loses_no_page(tmp_path: Path) -> None:
    listed = stories(tmp_path, 3)
    async with reading(tmp_path) as pool:
        assert await pool.read(listed[0], None)
        with stamina.set_testing(True, attempts=ATTEMPTS):
            killed = reader_pids(pool)
            assert len(killed) == PROCESSES
            tasks = [asyncio.create_task(pool.read(story, None)) for story in listed]
            await asyncio.sleep(0)
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            results = await asyncio.gather(*tasks)
            assert all(isinstance(result, PageFingerprinted) for result in results), results
        async with asyncio.timeout(120):  # one may be replaced while the other serves
            while len(reader_pids(pool) - killed) < PROCESSES:
                assert isinstance(await pool.read(listed[0], None), PageFingerprinted)


async def test_readers_import_nothing_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "queue.py").write_text("raise SystemExit('the working directory is on the path')")
    monkeypatch.chdir(tmp_path)
    fork_server.end_server()  # the next one starts here
    [story, *_] = stories(tmp_path, 1)
    async with reading(tmp_path) as pool:
        assert await pool.read(story, None)


async def test_more_errors_than_a_socket_holds_come_back(tmp_path: Path) -> None:
    """The event loop is busy and reads no answers: both ends write, and neither may wait for the other."""
    listed = [Story(n, HINDI, f"{f'{n:0200}/' * 10}page.html") for n in range(2000)]
    async with reading(tmp_path, most=2000) as pool:
        pool.concurrency.limit = len(listed)
        results = await asyncio.gather(*(pool.read(story, None) for story in listed), return_exceptions=True)
    assert set(results) == {Unreadable(Skip.MISSING)}


async def test_no_process_outlives_its_pool(tmp_path: Path) -> None:
    listed = stories(tmp_path, 1)
    with stamina.set_testing(True, attempts=1):
        async with reading(tmp_path) as pool:
            assert await pool.read(listed[0], None)
            started = reader_pids(pool)
            assert len(started) == PROCESSES
            ends = [os.pidfd_open(pid) for pid in started]
            for pid in started:
                os.kill(pid, signal.SIGSTOP)
            pending = asyncio.create_task(pool.read(listed[1], None))
            await asyncio.sleep(0)
        assert await pending == ReadFailed(Dead.STORE_ERROR, "the reader pool is closed")
    for end in ends:
        assert ends_within(end, GIVE_UP_SECONDS), f"some of {started} are still running"
        os.close(end)


STORY = Extraction("article")
HOSTILE = b"<p>" + b"".join(b"<b %d>" % n for n in range(1777)) + b"<p>x" * 16_000


def page_of(text: str) -> bytes:
    return f"<html><nav>menu</nav><article><p>{text}</p></article></html>".encode()


async def test_a_page_at_hand_reads_as_one_of_the_store(tmp_path: Path) -> None:
    async with aclosing(ReaderPool(Content(url=f"file:{tmp_path}"), STORY, 8)) as pool:
        for language in LANGUAGES:
            body = page_of(f"{TEXTS[language]} {TEXTS[language]}")
            story = extract_story(Page(body), STORY)
            found = await pool.prepare(body)
            assert isinstance(story, PageStory) and isinstance(found, Text)
            assert (found.written, found.fingerprint) == (story.text.written, story.text.fingerprint), language
        assert await pool.prepare(b"<p>no article") == Unreadable(Skip.NO_BODY)
        assert await pool.prepare(b"") == Unreadable(Skip.EMPTY)


async def test_a_hostile_page_is_read_without_its_markup_beside_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "MOST_MEMORY_BYTES", 50_000_000)
    async with aclosing(ReaderPool(Content(url=f"file:{tmp_path}"), Extraction(), 8)) as pool:
        await pool.start()
        pages = [page_of(2 * f"{TEXTS[language]} ") for language in LANGUAGES]
        hostile, *others = await asyncio.gather(*map(pool.prepare, [HOSTILE + pages[0], *pages]))
    assert isinstance(hostile, Text)
    assert hostile.marks == (Mark(MarkReason.TRUNCATED, Limit.BUDGET),)
    words = tokenize(2 * f"{TEXTS[LANGUAGES[0]]} ")
    assert hostile.words[-len(words) :] == words, "the story behind the bomb was not read"
    for other in others:
        assert isinstance(other, Text)
        assert MarkReason.TRUNCATED not in {mark.reason for mark in other.marks}
