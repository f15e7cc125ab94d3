"""A ledger and indexes in Redis that hold stories already, kept as files: every daily run starts from a copy."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import click
import redis
from neardup.index.redis import Layout
from neardup.ledger import connect
from neardup.records import Language

from tests.bench import scale_stages
from tests.bench.scale import memory_settings
from tests.bench.scale_corpus import Corpus
from tests.bench.scale_stages import Bed, alone
from tests.support.servers import redis_server
from tests.support.synthetic_stories import commit


@dataclass(frozen=True, slots=True)
class Held:
    """Where they are; an empty folder holds none."""

    folder: Path

    def copy_ledger(self, into: Path) -> None:
        if self._ledger.exists():
            shutil.copyfile(self._ledger, into)

    def settings(self, layout: Layout) -> list[str]:
        """Arguments for a redis-server that is to hold the index."""
        return [*memory_settings(), "--dir", str(self.folder), "--dbfilename", f"{layout}.rdb"]

    def fill(self, kind: str, stories: int, shares: Mapping[Language, int], layouts: Sequence[Layout]) -> None:
        """So many stories, divided by these shares, into the ledger; from it, into an index of each layout."""
        with closing(connect(self._ledger)) as db:
            for page in Corpus(kind, shares).pages(stories):
                commit(db, page)
        for layout in layouts:
            click.echo(f"index of {stories:,} stories, {layout}", err=True)
            with (
                redis_server(self.folder, *self.settings(layout)) as url,
                redis.Redis.from_url(url, socket_timeout=None) as client,
            ):
                alone(scale_stages.reindex, Bed(self._ledger, layout, url))
                client.save()

    @property
    def _ledger(self) -> Path:
        return self.folder / "held.db"
