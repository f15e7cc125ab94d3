"""What the review desk's pages take, as a client on this machine waits for them.

    python -m tests.bench.desk [--flags N] [--words N] [--cluster N]

A ledger of 50,000 flags is made of what the pipeline would write; two stories of 10,000 words share every second
stretch of 40 words, with a word in 20 changed.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from aiohttp import CookieJar
from aiohttp.test_utils import TestClient, TestServer
from neardup.app import open_readers
from neardup.config import Config, Content, Ledger, Source
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.verify import tiers
from neardup.languages import LANGUAGES
from neardup.ledger import connect, flags, stories, transaction
from neardup.moderation.desk.app import application, open_desk
from neardup.records import Fingerprint, Fingerprinted, Signals, Story

from tests.bench.report import out, table_of
from tests.support.languages import HINDI

REPEATS = 20
BATCH = 500
SIGNATURE = bytes(64)
DAY = 86_400_000
CLUSTER = 500_000_000
FLAG = (
    "INSERT INTO flags (a, b, kind, hamming, jaccard, containment_a, containment_b, flagged_at, fingerprint_version,"
    " language, severity, strength, joins_clusters, author_a, author_b)"
    " SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'v', a.language, ?9, ?10, 1, a.author_id, b.author_id"
    " FROM stories a, stories b WHERE a.id = ?1 AND b.id = ?2"
)


def fill(db: sqlite3.Connection, count: int, chance: random.Random) -> None:
    """Stories and flags: most pairs stand alone, some in clusters."""
    for first in range(0, count, BATCH):
        made = [_story(n, chance) for pair in range(first, first + BATCH) for n in (2 * pair, 2 * pair + 1)]
        stories.commit(db, stories.Batch(made, [], 1, {}, None))
    with transaction(db):
        db.executemany(FLAG, (_flag(n, chance) for n in range(count)))


def one_cluster(db: sqlite3.Connection, first: int, size: int, chance: random.Random) -> None:
    """Stories from `first` on, each flagged with the first of them: what a template makes."""
    for start in range(first, first + size, BATCH):
        made = [_story(n, chance) for n in range(start, min(start + BATCH, first + size))]
        stories.commit(db, stories.Batch(made, [], 1, {}, None))
    with transaction(db):
        db.executemany(
            FLAG, ((first, n, "exact", 0, 1.0, 1.0, 1.0, 1, 100, 1.0) for n in range(first + 1, first + size))
        )


def _story(n: int, chance: random.Random) -> Fingerprinted:
    language = LANGUAGES[n // 20 % len(LANGUAGES)]
    made = Fingerprint(chance.randbytes(16), chance.randbytes(16), SIGNATURE, 300, 250)
    title = f"कहानी {n} " + "शब्द " * (n % 9)
    return Fingerprinted(Story(n, language, None, str(n % 5000), title, n * 1000, n * 1000), made, None)


def _flag(n: int, chance: random.Random) -> tuple[object, ...]:
    a, b = (2 * n, 2 * n + 1) if n % 10 else (2 * n, 2 * n + 3)
    share = chance.uniform(0.5, 1)
    tier = tiers.TIERS[n % len(tiers.TIERS)]
    strength = tier.strength(Signals(n % 4, False, share * 0.9, share, share * 0.8))
    return a, b, tier.kind, n % 4, share * 0.9, share, share * 0.8, n * DAY // 1000, tier.severity, strength


def pages(folder: Path, db: sqlite3.Connection, words: int, chance: random.Random) -> tuple[int, int]:
    """Two long stories under `folder`, flagged as a pair; their ids."""
    vocabulary = ["".join(chance.choices("कखगघचछजझटठडढतथदधनपफबभमयरलवशषसह", k=5)) for _ in range(5000)]
    texts = [chance.choices(vocabulary, k=words) for _ in "ab"]
    for start in range(0, words, 80):
        texts[1][start : start + 40] = texts[0][start : start + 40]
    for place in range(0, words, 20):
        texts[1][place] = chance.choice(vocabulary)
    ids = 900_000_000, 900_000_001
    made = []
    for story_id, text in zip(ids, texts, strict=True):
        told = "\n".join(" ".join(text[at : at + 60]) for at in range(0, words, 60))
        (folder / f"{story_id}.html").write_text(
            "".join(f"<p>{line}</p>" for line in told.split("\n")), encoding="utf-8"
        )
        fingerprint = fingerprint_text(told)
        assert fingerprint is not None
        made.append(Fingerprinted(Story(story_id, HINDI, f"{story_id}.html", title="लंबी"), fingerprint, None))
    stories.commit(db, stories.Batch(made, [], 1, {}, None))
    with transaction(db):
        db.execute(FLAG, (*ids, "partial", 60, 0.4, 0.5, 0.5, 1))
    return ids


async def measure(folder: Path, paths: Mapping[str, str]) -> dict[str, list[float]]:
    """Milliseconds of each request, by the page's name."""
    config = Config(
        source=Source(manifest=Path("none")), content=Content(url=f"file:{folder}"), ledger=Ledger(path=folder / "l.db")
    )
    taken: dict[str, list[float]] = {}
    async with open_desk(config, lambda: open_readers(config), "127.0.0.1:0") as desk:
        server = TestServer(application(desk))
        async with TestClient(server, cookie_jar=CookieJar(unsafe=True), cookies={"neardup_name": "Asha"}) as client:
            for name, path in paths.items():
                for _ in range(REPEATS + 1):
                    began = time.perf_counter()
                    async with client.get(path, allow_redirects=False) as answer:
                        size = len(await answer.read())
                    assert answer.status == 200, (path, answer.status)
                    taken.setdefault(f"{name}, {size // 1000:,} KB", []).append(1000 * (time.perf_counter() - began))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--flags", type=int, default=50_000)
    parser.add_argument("--words", type=int, default=10_000)
    parser.add_argument("--cluster", type=int, default=10_000)
    asked = parser.parse_args()
    chance = random.Random(1)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with closing(connect(folder / "l.db")) as db:
            fill(db, asked.flags, chance)
            a, b = pages(folder, db, asked.words, chance)
            one_cluster(db, CLUSTER, asked.cluster, chance)
            db.execute("ANALYZE")
            middle = next(flags.select(db, limit=1, offset=asked.flags // 2))
        pair = "/pair/{}/{}".format(*sorted((middle["story_id"], middle["matched_id"])))
        taken = asyncio.run(
            measure(
                folder,
                {
                    "queue": "/",
                    "queue, the last page": f"/?page={asked.flags // 50}",
                    "queue of a language and a kind": "/?language=TAMIL&kind=similar",
                    "queue of an author": "/?author=77&status=every",
                    "pair in the middle, texts gone": f"{pair}?at={asked.flags // 2}",
                    "cluster of three": "/cluster/20",
                    f"cluster of {asked.cluster:,}": f"/cluster/{CLUSTER}",
                    "pair of that cluster": f"/pair/{CLUSTER}/{CLUSTER + 7}",
                    f"pair of two stories of {asked.words:,} words": f"/pair/{a}/{b}",
                },
            )
        )
    table = table_of(f"page, {asked.flags:,} flags", "first, ms", f"median of {REPEATS}, ms", "slowest, ms")
    for name, (first, *rest) in taken.items():
        table.add_row(name, f"{first:,.0f}", f"{statistics.median(rest):,.0f}", f"{max(rest):,.0f}")
    out.print(table)


if __name__ == "__main__":
    main()
