"""Hostile pages: each ends by a name and within its budget, and the stories beside it come out as without it."""

import asyncio
import csv
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path

import pytest
from neardup.config import Content
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.core.text.html import Extraction
from neardup.languages import LANGUAGES
from neardup.pages import watchdog
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.store import _gunzip
from neardup.records import Fingerprint, Language, Skip, Story

from tests.support.command import Neardup
from tests.support.faults.bed import BUCKET, State, configuration, over_s3
from tests.support.faults.fault_table import CHAOS, Row
from tests.support.faults.hostile_pages import (
    CASES,
    ENCODED,
    GZIPPED,
    HONEST,
    LABELS,
    MOST,
    PEAK_BYTES,
    PROSE,
    READ,
    Hostile,
    lie,
    watching,
)
from tests.support.languages import HINDI, TEXTS
from tests.support.ledger_state import state
from tests.support.paths import SAMPLES
from tests.support.servers import Aws

Make = Callable[..., Neardup]
START_SECONDS = 10.0  # of CPU, in which a process starts
HASTE_SECONDS = 2.0  # instead of CPU_SECONDS, where many pages are to be ended
HANGS_SECONDS = 240
BIG = 25_000_000  # bytes, for ten million words
FIRST = 9_000_000  # the id of the first hostile story
with (SAMPLES / "manifest.csv").open(encoding="utf-8") as _file:
    ROWS = list(csv.DictReader(_file))
IDS = {int(row["id"]) for row in ROWS}


@pytest.fixture
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less time for a page."""
    monkeypatch.setattr(watchdog, "CPU_SECONDS", HASTE_SECONDS)


@asynccontextmanager
async def reading(folder: Path, most: int = 8, max_bytes: int = MOST) -> AsyncIterator[ReaderPool]:
    readers = ReaderPool(Content(url=f"file:{folder}", max_bytes=max_bytes), Extraction(), most)
    try:
        async with asyncio.timeout(HANGS_SECONDS * CHAOS):
            yield readers
    finally:
        await readers.aclose()


async def outcome(readers: ReaderPool, path: str) -> Fingerprint | Skip:
    result = await readers.read(Story(1, HINDI, path), None)
    if isinstance(result, Unreadable):
        return result.reason
    assert isinstance(result, PageFingerprinted), result
    return result.fingerprint


def named(made: Fingerprint | Skip) -> str:
    return made if isinstance(made, Skip) else READ


@pytest.mark.usefixtures("haste")
async def test_each_page_ends_by_a_name_and_within_its_budget(tmp_path: Path) -> None:
    with watching(os.getpid()) as peaks:
        async with reading(tmp_path) as readers:
            (tmp_path / "page.html").write_text(PROSE, encoding="utf-8")
            assert named(await outcome(readers, "page.html")) == READ
            for name, case in CASES.items():
                (tmp_path / "page.html").write_bytes(case.page())
                before = dict(peaks.seconds)
                made = named(await outcome(readers, "page.html"))
                took = max((seconds - before.get(pid, 0.0) for pid, seconds in peaks.seconds.items()), default=0.0)
                assert made in case.outcomes, name
                assert took < START_SECONDS + HASTE_SECONDS, f"{name}: {took:.1f} s of CPU"
                assert peaks.memory < PEAK_BYTES, f"{name}: {peaks.memory:,} bytes"


async def test_ten_million_words_of_a_letter_where_a_page_may_be_so_large(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(CASES["ten million words of a letter"].page())
    with watching(os.getpid()) as peaks:
        async with reading(tmp_path, max_bytes=BIG) as readers:
            assert named(await outcome(readers, "page.html")) in (READ, Skip.OVER_BUDGET)
    assert peaks.memory < PEAK_BYTES


def test_gzip_members_without_a_byte_are_undone_within_the_budget() -> None:
    """It is spent where no page is on record yet."""
    body, began = GZIPPED["members without a byte"].page(), time.process_time()
    assert _gunzip(body, MOST) == b""
    assert time.process_time() - began < watchdog.CPU_SECONDS


async def test_a_lie_about_the_charset_is_seen_through_or_ends_by_a_name(tmp_path: Path) -> None:
    pages = list(product(LANGUAGES, LABELS, ENCODED))
    for n, page in enumerate(pages):
        (tmp_path / f"{n}.html").write_bytes(lie(*page))
    for language in LANGUAGES:
        (tmp_path / f"{language}.html").write_text(f"<p>{TEXTS[language]} {TEXTS[language]}</p>", encoding="utf-8")
    async with reading(tmp_path, most=32) as readers:
        made = await asyncio.gather(*(outcome(readers, f"{n}.html") for n in range(len(pages))))
        true = {language: await outcome(readers, f"{language}.html") for language in LANGUAGES}
    assert all(isinstance(one, Fingerprint) for one in true.values())
    for (language, declared, encoded), one in zip(pages, made, strict=True):
        told = f"{language} in {encoded}, said to be in {declared}: {named(one)}"
        assert named(one) in (READ, Skip.NOT_TEXT, Skip.TOO_SHORT, Skip.EMPTY), told
        if encoded in HONEST:
            assert one == true[language], told


# A whole backfill.


def of_samples(all_of_it: State) -> State:
    """What of a state speaks of the samples: their rows, and pairs that one of them is in."""
    held = {
        name: [row for row in rows if IDS.intersection(row[: 1 if name == "stories" else 2])]
        for name, rows in all_of_it.items()
        if name != "index"
    }
    index = [(bucket, ids & IDS) for bucket, ids in all_of_it["index"] if isinstance(ids, frozenset)]
    return held | {"index": [(bucket, ids) for bucket, ids in index if ids]}


def lies() -> Iterator[tuple[Language, bytes, str]]:
    """In each language a story, and what its Content-Type says of it."""
    for n, language in enumerate(LANGUAGES):
        for k, encoded in enumerate(ENCODED):
            declared = LABELS[(n + k) % len(LABELS)]
            yield language, lie(language, "utf-7", encoded), f"text/html; charset={declared}"


def put(aws: Aws) -> list[tuple[int, Language, Hostile]]:
    """The samples' pages and the hostile ones, into the bucket; the hostile stories."""
    store = aws.client("s3")
    for row in ROWS:
        key = f"{row['language']}/{row['id']}.html"
        store.put_object(Bucket=BUCKET, Key=key, Body=(SAMPLES / "stories" / key).read_bytes())
    anything = {READ, Skip.NOT_TEXT, Skip.TOO_SHORT, Skip.EMPTY}
    sure = [case for case in CASES.values() if len(case.outcomes) == 1]
    pages = [
        *((case, case.page(), {}) for case in sure),
        *((case, case.page(), {"ContentEncoding": "gzip"}) for case in GZIPPED.values()),
        *((Hostile(bytes, anything), body, {"ContentType": header}) for _, body, header in lies()),
    ]
    stories = []
    for n, (case, body, says) in enumerate(pages):
        language = LANGUAGES[n % len(LANGUAGES)]
        store.put_object(Bucket=BUCKET, Key=f"{language}/{FIRST + n}.html", Body=body, **says)
        stories.append((FIRST + n, language, case))
    return stories


def listing(path: Path, stories: list[tuple[int, Language, Hostile]]) -> Path:
    """The samples in their order, the hostile stories anywhere among them."""
    rows, chance = list(ROWS), random.Random(1)
    for number, language, _ in stories:
        rows.insert(chance.randint(0, len(rows)), {"id": str(number), "language": str(language)})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0], restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def whole_pages(text: str) -> str:
    return text.replace('body = "article .story, div.post-body"', "")


def test_the_stories_among_hostile_pages_come_out_as_without_them(
    aws: Aws, make_neardup: Make, tmp_path: Path, tell: Callable[[Row], None]
) -> None:
    aws.bucket(BUCKET)
    stories = put(aws)
    alone = over_s3(make_neardup(whole_pages(configuration(aws.endpoint)), "alone"))
    assert alone("backfill").code == 0
    manifest = listing(tmp_path / "manifest.csv", stories)
    for n in range(CHAOS):
        neardup = over_s3(make_neardup(whole_pages(configuration(aws.endpoint, manifest)), f"hostile{n}"))
        with watching(os.getpid()) as peaks:
            began = time.monotonic()
            ended = neardup("backfill", "--json")
            took = time.monotonic() - began
        assert ended.code == 0, ended.err
        assert "Traceback" not in ended.err
        assert peaks.memory < PEAK_BYTES, f"{peaks.memory:,} bytes"
        assert max(peaks.seconds.values()) < 3 * watchdog.CPU_SECONDS, (
            "of which starting, and pages within it, take little"
        )
        facts = ended.facts
        assert facts["dead_lettered"] == {}, "nobody's page died of another's"
        counted = Counter({READ: facts["fingerprinted"], **facts["skipped"]})
        assert counted.total() == len(ROWS) + len(stories)
        for reason in {READ, *Skip} - {Skip.UNCHANGED, Skip.SUPERSEDED, Skip.MISSING, Skip.NO_BODY}:
            sure = sum(case.outcomes == {reason} for _, _, case in stories) + len(ROWS) * (reason == READ)
            maybe = sum(reason in case.outcomes for _, _, case in stories) + len(ROWS) * (reason == READ)
            assert sure <= counted[reason] <= maybe, (reason, counted, ended.err)
        held, want = of_samples(state(neardup)), of_samples(state(alone))
        assert held == want
        lost = len(ROWS) - len(held["stories"])
        twice = len(held["flags"]) - len(want["flags"])
        tell(Row("hostile pages among stories", len(stories), len(ROWS), lost, twice, (took,)))
