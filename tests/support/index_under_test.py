"""An index under test, of any kind, with its own event loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import fakeredis
import uvloop
from neardup.core.candidates.banding import Banding, FingerprintArrays
from neardup.core.languages import LANGUAGES
from neardup.index.protocol import (
    Bandings,
    Bucket,
    Index,
    IndexPosition,
    LookupResult,
)
from neardup.index.redis import Layout, open_redis
from neardup.index.redis.client import Clients
from neardup.index.redis.layouts import Compact, Documented
from neardup.index.sqlite import SqliteIndex
from neardup.records import BandedFingerprint, Change, Language

from tests.support.languages import CODES, HINDI, NAMES, NUMBER_OF
from tests.support.sampling import CHAOS

SERVERS = ("redis", "valkey", "cluster", "fakeredis")
KINDS = ("sqlite", *SERVERS, *(f"compact {server}" for server in SERVERS))


def kinds_of(law: str) -> Sequence[str]:
    """Those of the KINDS with which the law of this name is tried: SQLite, and each server in one of the two layouts.

    `make chaos` tries all.
    """
    turn = crc32(law.encode())
    layouts = (server if (turn + n) % 2 else f"compact {server}" for n, server in enumerate(SERVERS))
    return KINDS if CHAOS > 1 else ("sqlite", *layouts)


class Bench:
    """An index of one of the KINDS; `where` is the URL of a Redis, `folder` holds SQLite's file.

    `current` is what a ledger would know: the story of each number that belongs to its latest version.
    """

    def __init__(self, kind: str, where: str, folder: Path) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.kind, self._where, self._folder = kind, where, folder
        self.current: dict[int, int] = {}
        self._fake = fakeredis.FakeServer()
        self._bandings: Bandings = dict.fromkeys(LANGUAGES, Banding())
        self.index = self._open(self._bandings)
        self.clear()

    @property
    def packed(self) -> bool:
        """Whether SimHashes have packed buckets, from which no number is ever removed."""
        return self.kind == "sqlite" or self.kind.startswith("compact")

    @property
    def banding(self) -> Banding:
        return self._bandings[HINDI]

    def _open(self, bandings: Bandings) -> Index:
        if self.kind == "sqlite":
            return SqliteIndex(self._folder / "ledger.db", bandings)
        layout: Layout = "compact" if self.kind.startswith("compact") else "documented"
        if self.kind.endswith("fakeredis"):
            client = fakeredis.FakeAsyncRedis(server=self._fake)
            index_class = Compact if layout == "compact" else Documented
            return index_class(Clients(client, client, is_cluster=False), bandings, CODES)
        return self.runner.run(open_redis(self._where, bandings, CODES, layout))

    def reopen(self, banding: Banding, others: Bandings | None = None) -> None:
        """Open the same data under other settings, `others` for some languages."""
        self.reopen_with(dict.fromkeys(LANGUAGES, banding) | dict(others or {}))

    def reopen_with(self, bandings: Bandings) -> None:
        """Open the same data with exactly these languages and settings."""
        if bandings != self._bandings:
            self.runner.run(self.index.close())
            self.index, self._bandings = self._open(bandings), bandings

    def close(self) -> None:
        self.runner.run(self.index.close())
        self.runner.close()

    def clear(self, sizes: Mapping[Language, int] | None = None) -> None:
        self.current.clear()
        self.runner.run(self.index.clear("ledger-1", "version-1", sizes or {}))

    def admit(self, version: str) -> None:
        self.runner.run(self.index.admit(version))

    def build(self, stories: Sequence[tuple[int, int, BandedFingerprint]], page: int) -> int:
        """Build from stories (number, id, fingerprints), `page` at a time; returns the number of stories built."""

        async def pages() -> AsyncIterator[FingerprintArrays]:
            for start in range(0, len(stories), page):
                rows = (
                    (number, story_id, NUMBER_OF[story.language], story.simhash, story.signature)
                    for number, story_id, story in stories[start : start + page]
                )
                yield FingerprintArrays.of(rows, NAMES)

        async def build() -> int:
            with TemporaryDirectory(dir=self._folder) as scratch:
                return sum([done async for done in self.index.build(pages(), Path(scratch))])

        return self.runner.run(build())

    def read_position(self) -> IndexPosition:
        return self.runner.run(self.index.read_position())

    def apply(self, *changes: Change, applied: int | None = None) -> None:
        self.runner.run(self.index.apply(changes, applied))
        for change in changes:
            for number in [n for n, story_id in self.current.items() if story_id == change.story_id]:
                del self.current[number]
            if change.new:
                self.current[change.number] = change.story_id

    def look_up(self, *probes: BandedFingerprint) -> list[LookupResult]:
        return self.runner.run(self.index.look_up(probes))[1]

    def ids(self, *probes: BandedFingerprint) -> list[set[int]]:
        """The ids of the current candidates of each probe, by SimHash or signature."""
        return [
            found.ids | {self.current[n] for n in found.numbers.tolist() if n in self.current}
            for found in self.look_up(*probes)
        ]

    def numbers(self, *probes: BandedFingerprint) -> list[list[int]]:
        return [found.numbers.tolist() for found in self.look_up(*probes)]

    def read_bucket_sizes(self, *sample: BandedFingerprint) -> dict[Bucket, int]:
        return self.runner.run(self.index.read_bucket_sizes(sample))


def insert(story_id: int, simhash: bytes, language: Language = HINDI, number: int | None = None) -> Change:
    """The insert of a story without a signature; its number is its id unless another is given."""
    return Change(0, story_id, None, BandedFingerprint(language, simhash), story_id if number is None else number)
