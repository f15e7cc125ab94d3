"""Each hostile page ends with a named outcome within its budget, and does not affect other stories."""

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
from neardup.core.languages import LANGUAGES
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.core.text.extraction import Extraction
from neardup.pages import watchdog
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.store import _gunzip
from neardup.records import Fingerprint, Language, Skip, Story

from tests.support.command import Neardup
from tests.support.faults.bed import BUCKET, State, configuration, over_s3
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.faults.hostile_pages import (
    CASES,
    ENCODED,
    GZIPPED,
    LABELS,
    MOST,
    PEAK_BYTES,
    PROSE,
    READ,
    SELF_EVIDENT,
    Hostile,
    mislabelled,
    watching,
)
from tests.support.languages import HINDI, TEXTS
from tests.support.paths import SAMPLES
from tests.support.samples import state
from tests.support.sampling import CHAOS, sample_cases
from tests.support.servers import Aws

Make = Callable[..., Neardup]
START_SECONDS = 10.0  # of CPU, for a process to start
SHORT_CPU_SECONDS = 0.5  # instead of CPU_SECONDS, for tests that end many pages
BACKFILL_CPU_SECONDS = 3.0  # and for a backfill, which has to read all but the pages that cost any budget
BUDGET = f"from neardup.pages import watchdog; watchdog.CPU_SECONDS = {BACKFILL_CPU_SECONDS}"
TIMEOUT_SECONDS = 240
BIG = 25_000_000  # bytes, enough for ten million words
MOST_ALONE, MOST_MISLABELLED = 12, 1_500  # pages that are read outside `make chaos`
MOST_AMONG_SAMPLES = 3  # hostile pages with one outcome
FIRST = 9_000_000  # the id of the first hostile story
with (SAMPLES / "manifest.csv").open(encoding="utf-8") as _file:
    ROWS = list(csv.DictReader(_file))
IDS = {int(row["id"]) for row in ROWS}


@pytest.fixture
def short_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives each page less CPU time."""
    monkeypatch.setattr(watchdog, "CPU_SECONDS", SHORT_CPU_SECONDS)


@asynccontextmanager
async def reading(folder: Path, most: int = 8, max_bytes: int = MOST) -> AsyncIterator[ReaderPool]:
    readers = ReaderPool(Content(url=f"file:{folder}", max_bytes=max_bytes), Extraction(), most)
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS * CHAOS):
            yield readers
    finally:
        await readers.aclose()


async def outcome(readers: ReaderPool, path: str) -> Fingerprint | Skip:
    result = await readers.read(Story(1, HINDI, path), None)
    if isinstance(result, Unreadable):
        return result.reason
    assert isinstance(result, PageFingerprinted), result
    return result.fingerprint


def outcome_name(result: Fingerprint | Skip) -> str:
    return result if isinstance(result, Skip) else READ


@pytest.mark.usefixtures("short_budget")
async def test_each_page_has_an_outcome_within_its_budget(tmp_path: Path) -> None:
    with watching(os.getpid()) as peaks:
        async with reading(tmp_path) as readers:
            (tmp_path / "page.html").write_text(PROSE, encoding="utf-8")
            assert outcome_name(await outcome(readers, "page.html")) == READ
            for name, case in sample_cases([*CASES.items()], MOST_ALONE):
                (tmp_path / "page.html").write_bytes(case.page())
                before = dict(peaks.seconds)
                name_of_outcome = outcome_name(await outcome(readers, "page.html"))
                took = max((seconds - before.get(pid, 0.0) for pid, seconds in peaks.seconds.items()), default=0.0)
                # A slow machine does less with a page before it ends.
                may_be_over = name_of_outcome == Skip.OVER_BUDGET and took > SHORT_CPU_SECONDS / 2
                assert may_be_over or name_of_outcome in case.outcomes, name
                assert took < START_SECONDS + SHORT_CPU_SECONDS, f"{name}: {took:.1f} s of CPU"
                assert peaks.memory < PEAK_BYTES, f"{name}: {peaks.memory:,} bytes"


async def test_ten_million_words_stay_within_the_memory_budget(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_bytes(CASES["ten million words of one letter"].page())
    with watching(os.getpid()) as peaks:
        async with reading(tmp_path, max_bytes=BIG) as readers:
            assert outcome_name(await outcome(readers, "page.html")) in (READ, Skip.OVER_BUDGET)
    assert peaks.memory < PEAK_BYTES


def test_empty_gzip_members_are_decompressed_within_the_budget() -> None:
    """Decompression happens before the watchdog knows the page."""
    body, began = GZIPPED["empty gzip members"].page(), time.process_time()
    assert _gunzip(body, MOST) == b""
    assert time.process_time() - began < watchdog.CPU_SECONDS


async def test_a_wrong_charset_label_has_a_named_outcome(tmp_path: Path) -> None:
    pages = sample_cases([*product(LANGUAGES, LABELS, ENCODED)], MOST_MISLABELLED)
    for n, page in enumerate(pages):
        (tmp_path / f"{n}.html").write_bytes(mislabelled(*page))
    for language in LANGUAGES:
        (tmp_path / f"{language}.html").write_text(f"<p>{TEXTS[language]} {TEXTS[language]}</p>", encoding="utf-8")
    async with reading(tmp_path, most=32) as readers:
        results = await asyncio.gather(*(outcome(readers, f"{n}.html") for n in range(len(pages))))
        expected = {language: await outcome(readers, f"{language}.html") for language in LANGUAGES}
    assert all(isinstance(fingerprint, Fingerprint) for fingerprint in expected.values())
    for (language, declared, encoded), result in zip(pages, results, strict=True):
        case = f"{language} in {encoded}, declared as {declared}: {outcome_name(result)}"
        assert outcome_name(result) in (READ, Skip.NOT_TEXT, Skip.TOO_SHORT, Skip.EMPTY), case
        if encoded in SELF_EVIDENT:
            assert result == expected[language], case


# A whole backfill.


def of_samples(whole: State) -> State:
    """The part of a state that concerns the samples: their rows, and the pairs with a sample."""
    tables = {
        name: [row for row in rows if IDS.intersection(row[: 1 if name == "stories" else 2])]
        for name, rows in whole.items()
        if name != "index"
    }
    index = [(bucket, ids & IDS) for bucket, ids in whole["index"] if isinstance(ids, frozenset)]
    return tables | {"index": [(bucket, ids) for bucket, ids in index if ids]}


def mislabelled_pages() -> Iterator[tuple[Language, bytes, str]]:
    """Mislabelled stories in all languages and encodings, with their Content-Type."""
    for n, language in enumerate(LANGUAGES):
        for k, encoded in enumerate(ENCODED):
            declared = LABELS[(n + k) % len(LABELS)]
            yield language, mislabelled(language, "utf-7", encoded), f"text/html; charset={declared}"


def put(aws: Aws) -> list[tuple[int, Language, Hostile]]:
    """Put the pages of the samples and the hostile pages into the bucket; returns the hostile stories."""
    store = aws.client("s3")
    for row in ROWS:
        key = f"{row['language']}/{row['id']}.html"
        store.put_object(Bucket=BUCKET, Key=key, Body=(SAMPLES / "stories" / key).read_bytes())
    anything = {READ, Skip.NOT_TEXT, Skip.TOO_SHORT, Skip.EMPTY}
    sure = [case for case in CASES.values() if len(case.outcomes) == 1]
    some = sample_cases(sure, MOST_AMONG_SAMPLES)
    pages = [
        *((case, case.page(), {}) for case in some),
        *((case, case.page(), {"ContentEncoding": "gzip"}) for case in GZIPPED.values()),
        *(
            (Hostile(bytes, anything), body, {"ContentType": header})
            for _, body, header in sample_cases([*mislabelled_pages()], 40)
        ),
    ]
    stories = []
    for n, (case, body, headers) in enumerate(pages):
        language = LANGUAGES[n % len(LANGUAGES)]
        store.put_object(Bucket=BUCKET, Key=f"{language}/{FIRST + n}.html", Body=body, **headers)
        stories.append((FIRST + n, language, case))
    return stories


def listing(path: Path, stories: list[tuple[int, Language, Hostile]]) -> Path:
    """Write a manifest of the samples in their order, with the hostile stories at random places among them."""
    rows, rng = list(ROWS), random.Random(1)
    for number, language, _ in stories:
        rows.insert(rng.randint(0, len(rows)), {"id": str(number), "language": str(language)})
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ROWS[0], restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def whole_pages(text: str) -> str:
    return text.replace('body = "article .story, div.post-body"', "")


def test_hostile_pages_do_not_affect_other_stories(
    aws: Aws, make_neardup: Make, tmp_path: Path, record_row: Callable[[Row], None]
) -> None:
    aws.bucket(BUCKET)
    stories = put(aws)
    alone = over_s3(make_neardup(whole_pages(configuration(aws.endpoint)), "alone"))
    assert alone("backfill").code == 0
    manifest = listing(tmp_path / "manifest.csv", stories)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(BUDGET, encoding="utf-8")
    for n in range(CHAOS):
        neardup = over_s3(make_neardup(whole_pages(configuration(aws.endpoint, manifest)), f"hostile{n}"))
        neardup.env["PYTHONPATH"] = str(tmp_path / "site")
        with watching(os.getpid()) as peaks:
            began = time.monotonic()
            ended = neardup("backfill", "--json")
            took = time.monotonic() - began
        assert ended.code == 0, ended.err
        assert "Traceback" not in ended.err
        assert peaks.memory < PEAK_BYTES, f"{peaks.memory:,} bytes"
        assert max(peaks.seconds.values()) < START_SECONDS + 3 * BACKFILL_CPU_SECONDS, (
            "a process took too much CPU time"
        )
        facts = ended.facts
        assert facts["dead_lettered"] == {}, "a page was lost because of another"
        counted = Counter({READ: facts["fingerprinted"], **facts["skipped"]})
        assert counted.total() == len(ROWS) + len(stories)
        for reason in {READ, *Skip} - {Skip.UNCHANGED, Skip.SUPERSEDED, Skip.MISSING, Skip.NO_BODY}:
            sure = sum(case.outcomes == {reason} for _, _, case in stories) + len(ROWS) * (reason == READ)
            maybe = sum(reason in case.outcomes for _, _, case in stories) + len(ROWS) * (reason == READ)
            assert sure <= counted[reason] <= maybe, (reason, counted, ended.err)
        actual, expected = of_samples(state(neardup)), of_samples(state(alone))
        assert actual == expected
        lost = len(ROWS) - len(actual["stories"])
        twice = len(actual["flags"]) - len(expected["flags"])
        said, pages = Said("an outcome of each page", counted.total() - len(ROWS)), len(stories)
        scenario, samples = "hostile pages among stories", len(ROWS)
        record_row(make_row(scenario, pages, said, in_flight=samples, lost=lost, flagged_twice=twice, seconds=(took,)))
