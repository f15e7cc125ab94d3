"""Measures the review desk's pages: response times as a client in the same process sees them, and their CPU.

    python -m tests.bench.desk [--flags N] [--words N] [--cluster N]

The ledger holds 50,000 flags, written as the pipeline writes them.  Two more stories of 10,000 words share every second
run of 40 words, with one word in 20 changed; a third one of 10,000 words copies 600 passages from 30 sources.

In a browser, a moderator decides DECIDED cases by keyboard, each a story of 1,500 words and its copy.
"""

import argparse
import asyncio
import os
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
from aiohttp import CookieJar
from aiohttp.test_utils import TestClient, TestServer
from neardup.app import open_desk
from neardup.config import Config, Content, Ledger, Source
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.languages import LANGUAGES
from neardup.core.verify import tiers
from neardup.ledger import cases, connect, flags, now_ms, similarities, stories, transaction, verdicts
from neardup.ledger.similarities import pack_spans
from neardup.moderation.desk.app import make_application
from neardup.process import collect_seldom
from neardup.records import Fingerprint, Fingerprinted, Signals, Story, Verdict

from tests.bench.report import out, table_of
from tests.support.command import Neardup
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_browser import chromium, decide_by_keys, serving, signed_in
from tests.support.desk_client import pairs_of
from tests.support.languages import HINDI
from tests.support.resource_meter import CpuTimes

REPEATS = 20
BATCH = 500
SIGNATURE = bytes(64)
DAY = 86_400_000
CLUSTER = 500_000_000
WORDS = 300  # of a story without a page
DECIDED = 50
MONTH, MODERATORS = 30, 5  # days in which so many decided cases
COPYING, SOURCES, PASSAGE = 950_000_000, 30, 8  # a story, the number of its sources, words
FLAG = (
    "INSERT INTO flags (a, b, kind, similarity, hamming, jaccard, containment_a, containment_b, flagged_at,"
    " fingerprint_version, language, severity, strength, joins_clusters, spans_a, spans_b, author_a, author_b,"
    " published_a, published_b)"
    " SELECT ?1, ?2, ?3, coalesce(?5, 0), ?4, ?5, ?6, ?7, ?8, 'v', a.language, ?9, ?10, 1, ?11, ?11,"
    " a.author_id, b.author_id, a.published_at, b.published_at"
    " FROM stories a, stories b WHERE a.id = ?1 AND b.id = ?2"
)


def fill(db: sqlite3.Connection, count: int, rng: random.Random) -> None:
    """Write stories and `count` flags; most pairs are clusters of their own, some belong to larger clusters."""
    for first in range(0, count, BATCH):
        batch = [_story(n, rng) for pair in range(first, first + BATCH) for n in (2 * pair, 2 * pair + 1)]
        stories.commit(db, stories.Batch(Outcomes.of(batch), [], 1, {}, None))
    with transaction(db):
        db.executemany(FLAG, (_flag(n, rng) for n in range(count)))
        similarities.refresh(db)


def write_cluster(db: sqlite3.Connection, first: int, size: int, rng: random.Random) -> None:
    """Write `size` stories with ids from `first` on, each flagged with the first one, as copies of a template are."""
    for start in range(first, first + size, BATCH):
        batch = [_story(n, rng) for n in range(start, min(start + BATCH, first + size))]
        stories.commit(db, stories.Batch(Outcomes.of(batch), [], 1, {}, None))
    with transaction(db):
        db.executemany(
            FLAG,
            ((first, n, "exact", 0, 1.0, 1.0, 1.0, 1, 100, 1.0, _spans(1)) for n in range(first + 1, first + size)),
        )
        similarities.refresh(db)


def _story(n: int, rng: random.Random) -> Fingerprinted:
    language = LANGUAGES[n // 20 % len(LANGUAGES)]
    fingerprint = Fingerprint(rng.randbytes(16), rng.randbytes(16), SIGNATURE, WORDS, 250)
    title = f"कहानी {n} " + "शब्द " * (n % 9)
    return Fingerprinted(Story(n, language, None, str(n % 5000), title, n * 1000, n * 1000), fingerprint, None)


def _flag(n: int, rng: random.Random) -> tuple[object, ...]:
    a, b = (2 * n, 2 * n + 1) if n % 10 else (2 * n, 2 * n + 3)
    share = rng.uniform(0.5, 1)
    tier = tiers.find_tier(tiers.list_kinds()[n % len(tiers.list_kinds())])
    strength = tier.strength(Signals(n % 4, False, share * 0.9, share, share * 0.8))
    return (
        a,
        b,
        tier.kind,
        n % 4,
        share * 0.9,
        share,
        share * 0.8,
        n * DAY // 1000,
        tier.severity,
        strength,
        _spans(share),
    )


def _spans(share: float) -> bytes | None:
    """The packed spans of a share of the words of a story of WORDS words."""
    return pack_spans(np.array([[0, share * WORDS]], np.int32))


def write_long_pair(folder: Path, db: sqlite3.Connection, words: int, rng: random.Random) -> tuple[int, int]:
    """Write two long stories with pages in `folder`, flagged as a pair; returns their ids."""
    vocabulary = ["".join(rng.choices("कखगघचछजझटठडढतथदधनपफबभमयरलवशषसह", k=5)) for _ in range(5000)]
    texts = [rng.choices(vocabulary, k=words) for _ in "ab"]
    for start in range(0, words, 80):
        texts[1][start : start + 40] = texts[0][start : start + 40]
    for position in range(0, words, 20):
        texts[1][position] = rng.choice(vocabulary)
    ids = 900_000_000, 900_000_001
    batch = []
    for story_id, text in zip(ids, texts, strict=True):
        paragraphs = [" ".join(text[at : at + 60]) for at in range(0, words, 60)]
        page = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
        (folder / f"{story_id}.html").write_text(page, encoding="utf-8")
        fingerprint = fingerprint_text("\n".join(paragraphs))
        assert fingerprint is not None
        story = Story(story_id, HINDI, f"{story_id}.html", title="लंबी")
        batch.append(Fingerprinted(story, fingerprint, None))
    stories.commit(db, stories.Batch(Outcomes.of(batch), [], 1, {}, None))
    with transaction(db):
        partial = tiers.find_tier("partial")
        strength = partial.strength(Signals(60, False, 0.4, 0.5, 0.5))
        db.execute(FLAG, (*ids, partial.kind, 60, 0.4, 0.5, 0.5, 1, partial.severity, strength, None))
    return ids


def write_copying(folder: Path, db: sqlite3.Connection, words: int, rng: random.Random) -> int:
    """Write a story with pages in `folder`, which copies half of its words from SOURCES sources; returns its id."""
    vocabulary = ["".join(rng.choices("कखगघचछजझटठडढतथदधनपफबभमयरलवशषसह", k=5)) for _ in range(5000)]
    story, *texts = ([rng.choice(vocabulary) for _ in range(words)] for _ in range(SOURCES + 1))
    copied: list[list[tuple[int, int, int]]] = [[] for _ in texts]
    for n, at in enumerate(range(0, words - PASSAGE, 2 * PASSAGE)):
        story[at : at + PASSAGE] = texts[n % SOURCES][at : at + PASSAGE]
        copied[n % SOURCES].append((at, at, PASSAGE))
    sources = [CopiedFrom(text, spans) for text, spans in zip(texts, copied, strict=True)]
    write_copying_story(folder, db, COPYING, HINDI, story, sources, title="बुनी हुई")
    return COPYING


def decide(db: sqlite3.Connection, count: int) -> None:
    """Decide `count` flags as plagiarism in the last MONTH days, as many each day."""
    db.execute("DELETE FROM leases")  # of the pages that were measured
    ids = [row[0] for row in db.execute("SELECT flag_id FROM flags WHERE status = 'open' LIMIT ?", (count,))]
    for day in range(MONTH):
        chosen = ids[day::MONTH]
        seen = verdicts.identify_state(db, chosen)
        verdicts.decide(db, chosen, Verdict.PLAGIARISM, "", f"moderator {day % MODERATORS}", seen)
    with transaction(db):
        for change in (
            "UPDATE flags SET flagged_at = ? - flag_id % ? * ?",
            "UPDATE verdicts SET decided_at = ? - verdict_id % ? * ?",
        ):
            db.execute(change, (now_ms(), MONTH, DAY))
        db.execute("INSERT INTO due_flags SELECT flag_id FROM flags WHERE true ON CONFLICT DO NOTHING")
    cases.refresh(db)


class Milliseconds(NamedTuple):
    """What the requests of a page took: the first one, the others, and the mean CPU of the others."""

    first: float
    others: list[float]
    cpu: float


async def measure(folder: Path, urls: Mapping[str, str]) -> dict[str, Milliseconds]:
    """What REPEATS + 1 requests of each page took, by its name; CPU includes the client and the reader processes."""
    config = Config(
        source=Source(manifest=Path("none")), content=Content(url=f"file:{folder}"), ledger=Ledger(path=folder / "l.db")
    )
    milliseconds: dict[str, Milliseconds] = {}
    cpu = CpuTimes()
    async with open_desk(config, "127.0.0.1:0") as desk:
        await desk.titles.catch_up()  # once after a backfill, it takes turns with the pages
        server = TestServer(make_application(desk))
        async with TestClient(server, cookie_jar=CookieJar(unsafe=True), cookies={"neardup_name": "Asha"}) as client:
            for name, url in urls.items():
                elapsed = list[float]()
                cpu_start = 0.0
                for _ in range(REPEATS + 1):
                    start = time.perf_counter()
                    async with client.get(url, allow_redirects=False) as answer:
                        size = len(await answer.read())
                    assert answer.status == 200, f"{url}: status {answer.status}"
                    elapsed.append(1000 * (time.perf_counter() - start))
                    cpu_start = cpu_start or cpu.seconds()
                used = 1000 * (cpu.seconds() - cpu_start) / REPEATS
                milliseconds[f"{name}, {size // 1000:,} KB"] = Milliseconds(elapsed[0], elapsed[1:], used)
    return milliseconds


def measure_keyboard(folder: Path) -> list[float]:
    """The milliseconds from each verdict until the next case was on screen."""
    neardup = Neardup(folder, dict(os.environ))
    neardup.configure(pairs_of(folder / "corpus", DECIDED, 1_500))
    ended = neardup("backfill", "--json")
    assert ended.code == 0, ended.err
    with chromium() as browser, serving(neardup) as desk, signed_in(browser, desk, folder) as asha:
        return decide_by_keys(asha, DECIDED)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--flags", type=int, default=50_000)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--cluster", type=int, default=10_000)
    options = parser.parse_args()
    collect_seldom()  # as `neardup review` does
    rng = random.Random(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        with closing(connect(folder / "l.db")) as db:
            fill(db, options.flags, rng)
            a, b = write_long_pair(folder, db, options.words, rng)
            copying = write_copying(folder, db, options.words, rng)
            write_cluster(db, CLUSTER, options.cluster, rng)
            db.execute("ANALYZE")
            start = time.perf_counter()
            cases.refresh(db)
            out.print(f"the cases of {options.flags + options.cluster:,} flags: {time.perf_counter() - start:.1f} s")
            middle = next(flags.select(db, limit=1, offset=options.flags // 2))
        pair = "/pair/{}/{}".format(*sorted((middle["story_id"], middle["matched_id"])))
        milliseconds = asyncio.run(
            measure(
                folder,
                {
                    "cases": "/",
                    "cases, last page": f"/?page={options.flags // 60}",
                    "cases by date": "/?sort=date",
                    "cases by the author's history": "/?sort=history",
                    "cases by size": "/?sort=stories&status=every",
                    "cases of one language and kind": "/?language=TAMIL&kind=similar",
                    "free cases from 50 % similarity": "/?similarity=0.5&inbox=free",
                    "cases of one author": "/?author=77&status=every",
                    "case in the middle, pages missing": f"/case/{middle['story_id']}?at={options.flags // 2}",
                    f"case of {options.cluster:,} stories": f"/case/{CLUSTER}?sort=stories&at=0",
                    f"case of {options.words:,} words with {SOURCES} sources": f"/case/{copying}?at=0",
                    "pair in the middle, pages missing": f"{pair}?at={options.flags // 2}",
                    "pair of that cluster": f"/pair/{CLUSTER}/{CLUSTER + 7}",
                    "author": "/author/77",
                    "authors": "/authors",
                    "statistics": "/statistics",
                    f"story of {options.words:,} words with {SOURCES} sources": f"/story/{copying}",
                    f"pair of two stories of {options.words:,} words": f"/pair/{a}/{b}",
                },
            )
        )
        with closing(connect(folder / "l.db")) as db:
            decide(db, options.flags * 2 // 5)
            [decided] = db.execute("SELECT count(*) FROM cases WHERE decided_at IS NOT NULL").fetchone()
        milliseconds |= asyncio.run(
            measure(folder, {f"statistics, {decided:,} cases decided in {MONTH} days": "/statistics"})
        )
    table = table_of(
        f"page, {options.flags:,} flags", "first, ms", f"median of {REPEATS}, ms", "CPU, ms", "slowest, ms"
    )
    for name, (first, others, cpu) in milliseconds.items():
        median = statistics.median(others)
        table.add_row(name, f"{first:,.0f}", f"{median:,.0f}", f"{cpu:,.0f}", f"{max(others):,.0f}")
    out.print(table)
    with tempfile.TemporaryDirectory() as temporary:
        keyboard = measure_keyboard(Path(temporary))
    median, slowest = statistics.median(keyboard), max(keyboard)
    out.print(f"in a browser, from a verdict to the next case: median {median:.0f} ms, slowest {slowest:.0f} ms")


if __name__ == "__main__":
    main()
