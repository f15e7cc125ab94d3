"""An index under test, of any kind, and the loop it lives on."""

import asyncio
from pathlib import Path

import fakeredis
import uvloop

from daemon.core.banding import Banding
from daemon.index import Bandings, Found, Index, Mark
from daemon.index.redis import RedisIndex, open_redis
from daemon.index.sqlite import SqliteIndex
from daemon.records import Banded, Change, Language

KINDS = ("sqlite", "redis", "cluster", "fakeredis")


class Bench:
    """An index of one of the KINDS; `where` is a Redis's URL, `folder` holds SQLite's file."""

    def __init__(self, kind: str, where: str, folder: Path) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.kind, self._where, self._folder = kind, where, folder
        self._fake = fakeredis.FakeServer()
        self._bandings: Bandings = dict.fromkeys(Language, Banding())
        self.index = self._open(self._bandings)
        self.clear()

    @property
    def banding(self) -> Banding:
        return self._bandings[Language.HINDI]

    def _open(self, bandings: Bandings) -> Index:
        if self.kind == "sqlite":
            return SqliteIndex(self._folder / "ledger.db", bandings)
        if self.kind == "fakeredis":
            return RedisIndex(fakeredis.FakeAsyncRedis(server=self._fake), bandings, cluster=False)
        return self.runner.run(open_redis(self._where, bandings))

    def reopen(self, banding: Banding, others: Bandings | None = None) -> None:
        """The same data under other settings, and under others yet for some languages."""
        bandings = dict.fromkeys(Language, banding) | dict(others or {})
        if bandings != self._bandings:
            self.runner.run(self.index.close())
            self.index, self._bandings = self._open(bandings), bandings

    def close(self) -> None:
        self.runner.run(self.index.close())
        self.runner.close()

    def clear(self) -> None:
        self.runner.run(self.index.clear("ledger-1", "version-1"))

    def mark(self) -> Mark:
        return self.runner.run(self.index.mark())

    def apply(self, *changes: Change, applied: int | None = None) -> None:
        self.runner.run(self.index.apply(changes, applied))

    def lookup(self, *probes: Banded) -> list[Found]:
        return self.runner.run(self.index.lookup(probes))[1]

    def ids(self, *probes: Banded) -> list[set[int]]:
        return [found.ids for found in self.lookup(*probes)]

    def numbers(self, *probes: Banded) -> list[list[int]]:
        return [found.numbers.tolist() for found in self.lookup(*probes)]

    def bucket_sizes(self, *sample: Banded) -> dict[str, int]:
        return self.runner.run(self.index.bucket_sizes(sample))


def insert(story_id: int, simhash: bytes, language: Language = Language.HINDI) -> Change:
    """A story without a signature, as a rebuild puts it in."""
    return Change(0, story_id, None, Banded(language, simhash))
