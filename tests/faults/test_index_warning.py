"""`doctor` warns of an index that holds other than the ledger expects, and `status` of what a run repaired."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from msgspec.structs import replace
from neardup.app import open_app, run_once
from neardup.config import load
from neardup.ops import doctor
from neardup.ops.doctor import NeedsRepair
from neardup.pipeline.index_sync import rebuild

from tests.support.command import Neardup, embedded
from tests.support.faults import index_damage
from tests.support.faults.bed import impatient
from tests.support.faults.index_damage import Damage, DamagedIndex, share_of_buckets
from tests.support.sampling import crossed

KINDS = ("sqlite", "documented", "compact")


def lost_everything(index: DamagedIndex) -> None:
    if index.kind == "sqlite":
        index.query("DELETE FROM index_buckets")
        index.query("DELETE FROM index_marks")
    else:
        index.redis("FLUSHALL")


def behind(index: DamagedIndex) -> None:
    if index.kind == "sqlite":
        index.query("UPDATE index_marks SET value = 3 WHERE key = 'applied'")
    else:
        index.redis("SET", "neardup:applied", 3)


def ahead(index: DamagedIndex) -> None:
    if index.kind == "sqlite":
        index.query("UPDATE index_marks SET value = 3000000 WHERE key = 'applied'")
    else:
        index.redis("SET", "neardup:applied", 3_000_000)


DAMAGE: dict[str, tuple[Damage, str]] = {
    "a tenth of the keys": (share_of_buckets(0.1), ""),
    "odd buckets": (index_damage.odd_buckets, "damaged"),
    "everything": (lost_everything, "not in step with the ledger"),
    "the last changes": (behind, "lacks the last"),
    "changes never made": (ahead, "never made"),
    "counts": (index_damage.lost_hashes, ""),
}


@pytest.fixture(scope="module")
def in_one_loop() -> Iterator[None]:
    with impatient():
        yield


@pytest.mark.usefixtures("in_one_loop")
@pytest.mark.parametrize(("name", "kind"), crossed([*DAMAGE], KINDS))
def test_each_difference_is_a_warning_with_the_remedy(name: str, kind: str, redis_url: str, tmp_path: Path) -> None:
    damage, words = DAMAGE[name]
    path, layout = tmp_path / "config.toml", "" if kind == "sqlite" else f'layout = "{kind}"\n'
    index_url = "sqlite:" if kind == "sqlite" else redis_url
    text = embedded(index=index_url).replace("[ledger]", f"{layout}[ledger]")
    path.write_text(text.replace('"neardup.db"', f'"{tmp_path}/neardup.db"'), encoding="utf-8")
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("set-max-intset-entries", 1_000_000)
    config = load(path)

    async def scenario() -> str:
        async with open_app(config) as app:
            await run_once(app, "backfill", asyncio.Event())
            assert "a probe was written and found" in await doctor._check_index(config)
            damage(DamagedIndex(kind, tmp_path / "neardup.db", redis_url))
            with pytest.raises(NeedsRepair) as warning:
                await doctor._check_index(config)
            await rebuild(app.index, app.ledger, app.version)
            assert "a probe was written and found" in await doctor._check_index(config)
            return str(warning.value)

    message: str = asyncio.run(scenario())
    assert words in message and "neardup reindex" in message


def levels(neardup: Neardup, content: str = "") -> tuple[int, dict[str, tuple[str, str]]]:
    """The exit code of `doctor`, and the level and the message of each part."""
    env = {"NEARDUP_CONTENT__URL": content} if content else {}
    report = replace(neardup, env=neardup.env | env)("doctor", "--json")
    rows = [json.loads(line) for line in report.out.splitlines()]
    return report.code, {row["part"]: (row["level"], row["said"]) for row in rows}


@pytest.mark.usefixtures("flagged")
def test_status_and_the_run_say_what_was_repaired(neardup: Neardup) -> None:
    share_of_buckets(0.2)(DamagedIndex("sqlite", neardup.ledger, ""))
    code, parts = levels(neardup)
    level, message = parts.pop("index")
    assert (code, level) == (3, "warn"), f"{code}, {level}, {message}"
    assert {other for other, _ in parts.values()} == {"ok"}, parts
    code, parts = levels(neardup, "file:/nowhere")
    assert (code, parts["index"][0], parts["object store"][0]) == (1, "warn", "fail"), parts
    run = neardup("daily")
    assert "warning: the index had lost data" in run.out, run.out
    assert run.err.count("the index has lost") == 1, run.err
    assert "warning: the index had lost data" in neardup("status").out
    assert levels(neardup)[0] == 0, levels(neardup)
