"""An index under test, of any kind, and the loop it lives on."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import fakeredis
import uvloop
from neardup.core.candidates.banding import Banding
from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.index.protocol import Bandings, Found, Index, Mark
from neardup.index.redis import LAYOUTS, Layout, open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.languages import LANGUAGES
from neardup.records import Banded, Change, Language

from tests.support.languages import CODES, HINDI, NAMES, NUMBER_OF

SERVERS = ("redis", "cluster", "fakeredis")
KINDS = ("sqlite", *SERVERS, *(f"compact {server}" for server in SERVERS))


class Bench:
    """An index of one of the KINDS; `where` is a Redis's URL, `folder` holds SQLite's file.

    `current` is what a ledger would know: the story that has a number, if that version is its last.
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
        """Whether the SimHashes stand in packed buckets, which nobody leaves."""
        return self.kind == "sqlite" or self.kind.startswith("compact")

    @property
    def banding(self) -> Banding:
        return self._bandings[HINDI]

    def _open(self, bandings: Bandings) -> Index:
        if self.kind == "sqlite":
            return SqliteIndex(self._folder / "ledger.db", bandings)
        layout: Layout = "compact" if self.kind.startswith("compact") else "documented"
        if self.kind.endswith("fakeredis"):
            return LAYOUTS[layout](fakeredis.FakeAsyncRedis(server=self._fake), bandings, CODES, cluster=False)
        return self.runner.run(open_redis(self._where, bandings, CODES, layout))

    def reopen(self, banding: Banding, others: Bandings | None = None) -> None:
        """The same data under other settings, and under others yet for some languages."""
        bandings = dict.fromkeys(LANGUAGES, banding) | dict(others or {})
        if bandings != self._bandings:
            self.runner.run(self.index.close())
            self.index, self._bandings = self._open(bandings), bandings

    def close(self) -> None:
        self.runner.run(self.index.close())
        self.runner.close()

    def clear(self, sizes: Mapping[Language, int] | None = None) -> None:
        self.current.clear()
        self.runner.run(self.index.clear("ledger-1", "version-1", sizes or {}))

    def build(self, stories: Sequence[tuple[int, int, Banded]], page: int) -> int:
        """Build from stories of a number and an id, so many a page; how many are in."""

        async def pages() -> AsyncIterator[Columns]:
            for start in range(0, len(stories), page):
                yield Columns.of(
                    (
                        (number, story_id, NUMBER_OF[one.language], one.simhash, one.signature)
                        for number, story_id, one in stories[start : start + page]
                    ),
                    NAMES,
                )

        async def build() -> int:
            with TemporaryDirectory(dir=self._folder) as scratch:
                return sum([done async for done in self.index.build(pages(), Path(scratch))])

        return self.runner.run(build())

    def mark(self) -> Mark:
        return self.runner.run(self.index.mark())

    def apply(self, *changes: Change, applied: int | None = None) -> None:
        self.runner.run(self.index.apply(changes, applied))
        for change in changes:
            for number in [n for n, story_id in self.current.items() if story_id == change.story_id]:
                del self.current[number]
            if change.new:
                self.current[change.number] = change.story_id

    def lookup(self, *probes: Banded) -> list[Found]:
        return self.runner.run(self.index.lookup(probes))[1]

    def ids(self, *probes: Banded) -> list[set[int]]:
        """The stories that were found, by either tier."""
        return [
            found.ids | {self.current[n] for n in found.numbers.tolist() if n in self.current}
            for found in self.lookup(*probes)
        ]

    def numbers(self, *probes: Banded) -> list[list[int]]:
        return [found.numbers.tolist() for found in self.lookup(*probes)]

    def bucket_sizes(self, *sample: Banded) -> dict[str, int]:
        return self.runner.run(self.index.bucket_sizes(sample))


def insert(story_id: int, simhash: bytes, language: Language = HINDI, number: int | None = None) -> Change:
    """A story without a signature, as a rebuild puts it in; its number is its id, if no other is given."""
    return Change(0, story_id, None, Banded(language, simhash), story_id if number is None else number)
