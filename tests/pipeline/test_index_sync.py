"""Law: whatever an index has lost, `catch_up` brings it in step with the ledger, and logs that data was lost."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import redis
from neardup.core.candidates.banding import Banding
from neardup.core.columns import Outcomes
from neardup.core.languages import LANGUAGES
from neardup.errors import Fatal
from neardup.index.protocol import Index
from neardup.index.redis import Layout, open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, outbox, runs, stories
from neardup.ledger.stories import remove_all
from neardup.pipeline import index_sync
from neardup.pipeline.index_sync import admit_version, catch_up, forget_fingerprints, read_ledger_id, rebuild
from neardup.pipeline.passage_sync import open_passages
from neardup.records import Fingerprinted, Story
from structlog.testing import capture_logs

from tests.support.builders import fingerprint_of, stories_as_changes
from tests.support.faults.consistency import index_faults
from tests.support.languages import CODES, HINDI

BANDINGS = dict.fromkeys(LANGUAGES, Banding())
Scene = Callable[[Ledger, Index], Awaitable[None]]


@asynccontextmanager
async def opened(folder: Path, kind: str = "sqlite", url: str = "") -> AsyncIterator[tuple[Ledger, Any]]:
    """A ledger, and an index in its file or in the Redis at a URL."""
    with closing(Ledger(folder / "l.db")) as ledger:
        layout: Layout = "compact" if kind == "compact" else "documented"
        index: Index = (
            SqliteIndex(ledger.path, BANDINGS) if kind == "sqlite" else await open_redis(url, BANDINGS, CODES, layout)
        )
        try:
            yield ledger, index
        finally:
            await index.close()


async def commit(ledger: Ledger, *texts: tuple[int, int]) -> None:
    outcomes = [
        Fingerprinted(Story(n, HINDI), fingerprint_of(text.to_bytes(16), bytes([text]) * 64), None) for n, text in texts
    ]
    await ledger.do(stories.commit, stories.Batch(Outcomes.of(outcomes), (), 1, {}, None))


async def assert_in_step(ledger: Ledger, index: Index) -> None:
    held = await ledger.do(stories_as_changes)
    assert (await index.read_position()).applied == await ledger.do(outbox.read_last_seq)
    _, found = await index.look_up([change.new for change in held if change.new])
    for change, change_found in zip(held, found, strict=True):
        assert change.number in change_found.numbers, f"story {change.story_id} is not in its buckets"
    assert sum((await index.count_stories()).values()) == len(held)


def scratch_folders(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*-rebuild-*")]


async def behind(ledger: Ledger, index: Index) -> None:
    await commit(ledger, (3, 3), (1, 99))


async def emptied(ledger: Ledger, index: Index) -> None:
    await index.clear(await read_ledger_id(ledger), "v")


async def ahead(ledger: Ledger, index: Index) -> None:
    await index.apply([], 1000)


async def older_than_the_outbox(ledger: Ledger, index: Index) -> None:
    await commit(ledger, (4, 4), (5, 5))
    await ledger.do(outbox.prune_changes, 0)


@pytest.mark.parametrize("kind", ["sqlite", "documented", "compact"])
@pytest.mark.parametrize("scene", [behind, emptied, ahead, older_than_the_outbox])
async def test_an_index_is_healed(kind: str, scene: Scene, tmp_path: Path, redis_or_valkey_url: str) -> None:
    async with opened(tmp_path, kind, redis_or_valkey_url) as (ledger, index):
        await catch_up(index, ledger, "v")
        await commit(ledger, (1, 1), (2, 2))
        await catch_up(index, ledger, "v")
        await assert_in_step(ledger, index)
        await scene(ledger, index)
        with capture_logs() as logs:
            await catch_up(index, ledger, "v")
        await assert_in_step(ledger, index)
        assert bool(logs) == (scene is not behind), f"lost data must be logged, and a lag must not: {logs}"


@pytest.mark.parametrize("kind", ["sqlite", "documented", "compact"])
async def test_an_interrupted_rebuild_leaves_no_position_and_is_repeated(
    kind: str, tmp_path: Path, redis_or_valkey_url: str
) -> None:
    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    async with opened(tmp_path, kind, redis_or_valkey_url) as (ledger, index):
        await catch_up(index, ledger, "v")
        await commit(ledger, (1, 1), (2, 2), (3, 3))
        await catch_up(index, ledger, "v")
        with pytest.raises(KeyboardInterrupt):
            await rebuild(index, ledger, "v", interrupt)
        assert (await index.read_position()).applied is None
        progress: list[int] = []
        assert await rebuild(index, ledger, "v", progress.append) == 3
        assert progress == sorted(progress) and progress[-1] == 3
        await assert_in_step(ledger, index)
    assert not scratch_folders(tmp_path), "scratch files are left behind"


@pytest.mark.parametrize("kind", ["sqlite", "documented", "compact"])
async def test_stories_written_during_a_rebuild_are_entered_once(
    kind: str, tmp_path: Path, redis_or_valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_sync, "REBUILD_STORIES", 2)
    async with opened(tmp_path, kind, redis_or_valkey_url) as (ledger, index):
        await catch_up(index, ledger, "v")
        await commit(ledger, (1, 1), (2, 2), (3, 3))
        build = index.build

        async def build_while_stories_arrive(pages: Any, scratch: Path) -> AsyncIterator[int]:
            await commit(ledger, (4, 4), (1, 99))
            async for done in build(pages, scratch):
                yield done

        monkeypatch.setattr(index, "build", build_while_stories_arrive)
        await rebuild(index, ledger, "v")
        await catch_up(index, ledger, "v")
        await assert_in_step(ledger, index)
    assert index_faults(tmp_path / "l.db", kind, redis_or_valkey_url) == [], "a story is in a bucket twice, or in none"


async def test_a_redis_restored_from_an_older_snapshot_is_replayed(tmp_path: Path, redis_or_valkey_url: str) -> None:
    async with opened(tmp_path, "documented", redis_or_valkey_url) as (ledger, index):
        await catch_up(index, ledger, "v")
        await commit(ledger, (1, 1), (2, 2))
        await catch_up(index, ledger, "v")
        with redis.Redis.from_url(redis_or_valkey_url) as client:
            dumped = {key: client.dump(key) for key in client.scan_iter()}
            await commit(ledger, (2, 77), (3, 3))
            await catch_up(index, ledger, "v")
            client.flushall()
            for key, value in dumped.items():
                client.restore(key, 0, value)
        await catch_up(index, ledger, "v")
        await assert_in_step(ledger, index)


@pytest.mark.parametrize(
    ("owner", "message"), [(("another", "v"), "another ledger"), ((None, "other"), "neardup reindex")]
)
async def test_the_index_of_another_ledger_is_refused(
    tmp_path: Path, owner: tuple[str | None, str], message: str
) -> None:
    async with opened(tmp_path) as (ledger, index):
        await index.clear(owner[0] or await read_ledger_id(ledger), owner[1])
        with pytest.raises(Fatal, match=message):
            await admit_version(index, ledger, "v")


async def test_catch_up_leaves_the_index_of_another_ledger_unchanged(tmp_path: Path) -> None:
    async with opened(tmp_path) as (ledger, index):
        await index.clear("another", "v")
        await index.apply([], 7)
        with pytest.raises(Fatal, match="another ledger"):
            await catch_up(index, ledger, "v")
        assert (await index.read_position()).applied == 7, "the index was changed"


async def test_an_interrupted_refingerprinting_is_resumed(tmp_path: Path) -> None:
    async with opened(tmp_path) as (ledger, index):
        passages = await open_passages(ledger)
        await catch_up(index, ledger, "v")
        await commit(ledger, (1, 1))
        await catch_up(index, ledger, "v")
        await ledger.do(remove_all, "v", "whole pages")  # as if killed before the index was cleared
        await forget_fingerprints(index, passages, ledger, "v", "whole pages")
        await catch_up(index, ledger, "v")
        await assert_in_step(ledger, index)
        await commit(ledger, (1, 1))
        await forget_fingerprints(index, passages, ledger, "v", "whole pages")
        held = await ledger.do(stories.read_stored_versions, [1])
        assert 1 in held, "the fingerprint made before the interruption was deleted"
        await forget_fingerprints(index, passages, ledger, "v", "their <article>")
        held = await ledger.do(stories.read_stored_versions, [1])
        assert held == {}, "fingerprints of other extraction settings were kept"


async def test_scratch_files_of_a_killed_rebuild_are_removed(tmp_path: Path) -> None:
    async with opened(tmp_path) as (ledger, index):
        for name in ("l.db-rebuild-1", "other.db-rebuild-1"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "column").write_bytes(b"x")
        await commit(ledger, (1, 1))
        await rebuild(index, ledger, "v")
    assert scratch_folders(tmp_path) == ["other.db-rebuild-1"]


async def test_another_version_is_refused_with_the_remedy(tmp_path: Path) -> None:
    async with opened(tmp_path) as (ledger, index):
        await ledger.do(runs.put, "fingerprint_version", "older")
        with pytest.raises(Fatal, match="backfill --refingerprint"):
            await admit_version(index, ledger, "v")
