"""A filled ledger and Redis snapshots of its index, kept as files; each daily run starts from a copy."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import click
import redis
from msgspec import Struct
from neardup.index.redis import Layout
from neardup.ledger import connect, outbox
from neardup.records import Language

from tests.bench import scale_stages
from tests.bench.scale import memory_settings
from tests.bench.scale_corpus import Corpus
from tests.bench.scale_stages import Setup, in_own_process
from tests.support.servers import redis_server
from tests.support.synthetic import commit


class StartState(Struct, frozen=True):
    """The folder that holds these files; if it is empty, runs start with an empty ledger and index."""

    folder: Path

    def copy_ledger(self, into: Path) -> None:
        if self.ledger.exists():
            shutil.copyfile(self.ledger, into)

    def settings(self, layout: Layout) -> list[str]:
        """Arguments with which a redis-server loads the snapshot of the index, if there is one."""
        return [*memory_settings(), "--dir", str(self.folder), "--dbfilename", f"{layout}.rdb"]

    def fill(self, kind: str, stories: int, shares: Mapping[Language, int], layouts: Sequence[Layout]) -> None:
        """Fill the ledger with stories in these shares, and snapshot an index of each layout built from it."""
        with closing(connect(self.ledger)) as db:
            for page in Corpus(kind, shares).pages(stories):
                commit(db, page)
        for layout in layouts:
            click.echo(f"index of {stories:,} stories, {layout}", err=True)
            with (
                redis_server(self.folder, *self.settings(layout)) as url,
                redis.Redis.from_url(url, socket_timeout=None) as client,
            ):
                in_own_process(scale_stages.reindex, Setup(self.ledger, layout, url))
                client.save()
        with closing(connect(self.ledger)) as db:
            outbox.prove_lookups(db)  # that building the index doubted: a run would look up all stories again

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"
