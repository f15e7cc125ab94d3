"""An index that has lost a part of its data, or holds garbage: found and repaired within one run, with every flag.

`doctor` warns of an index that holds other than the ledger expects, and `status` of what a run repaired.
"""

import asyncio
import csv
import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import redis
from msgspec import Struct
from msgspec.structs import replace
from neardup.app import open_app, run_once
from neardup.config import load
from neardup.ops import doctor
from neardup.ops.doctor import NeedsRepair
from neardup.pipeline.index_sync import rebuild
from neardup.pipeline.summary import Progress, RunSummary
from structlog.testing import capture_logs

from tests.support.command import Neardup, embedded
from tests.support.faults import index_damage
from tests.support.faults.bed import impatient
from tests.support.faults.consistency import State, index_faults, state_of
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.faults.index_damage import Damage, DamagedIndex, share_of_buckets
from tests.support.generated_stories import COPY_EVERY, configuration, generate
from tests.support.sampling import CHAOS, crossed

STORIES = 200
KINDS = ("sqlite", "documented", "compact")
REPAIRED: dict[str, Damage] = {
    "a twentieth of the buckets": share_of_buckets(0.05),
    "a tenth of the keys": share_of_buckets(0.1),
    "whole bands": index_damage.whole_bands,
    "one language": index_damage.one_language,
    "records of settings": index_damage.records,
    "mangled position": index_damage.mangled_position,
    "position of another type": index_damage.position_of_another_type,
    "mangled widths": index_damage.mangled_widths,
    "odd buckets": index_damage.odd_buckets,
    "buckets of another type": index_damage.buckets_of_another_type,
    "buckets with other numbers": index_damage.shifted_buckets,
    "hashes or counts": index_damage.lost_hashes,
}
IN_EVERY_KIND = "a twentieth of the buckets"


def damaged(turn: int) -> pytest.MarkDecorator:
    """The damage and the kind of index of each case: all in `make chaos`, else every second damage, in one kind."""
    cases = [
        (label, kind)
        for (n, label), (k, kind) in product(enumerate(REPAIRED), enumerate(KINDS))
        if CHAOS > 1 or label == IN_EVERY_KIND or (n % 2 == turn and k == n // 2 % len(KINDS))
    ]
    return pytest.mark.parametrize(("label", "scene"), cases, indirect=["scene"])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stories, of which `first.csv` lists those that are no copies."""
    folder = tmp_path_factory.mktemp("corpus")
    with generate(folder, STORIES).open(encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    with (folder / "first.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *(row for row in rows if int(row[0]) % COPY_EVERY > 1)])
    return folder


@pytest.fixture(autouse=True, scope="module")
def fast() -> Iterator[None]:
    with impatient():
        yield


class Scene(Struct):
    """A ledger of its own with an index of this kind, and runs over the corpus; `expected` is the undisturbed state."""

    kind: str
    url: str
    corpus: Path
    folder: Path
    expected: State

    @property
    def index(self) -> DamagedIndex:
        return DamagedIndex(self.kind, self.folder / "neardup.db", self.url)

    def run(
        self, watch: Callable[[Progress], None] = lambda _: None, manifest: str = "manifest.csv"
    ) -> tuple[RunSummary, dict[str, int]]:
        """A backfill over a manifest: its summary, and what it says of the index."""
        layout = f'layout = "{self.kind}"' if self.kind != "sqlite" else ""
        text = configuration(self.corpus, "sqlite:" if self.kind == "sqlite" else self.url)
        text = text.replace("manifest.csv", manifest).replace("[index]", f"[index]\n{layout}")
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "config.toml"
        config.write_text(f"{text}\n[run]\nbatch = 16\nqueue = 16\nworkers = 4\n", encoding="utf-8")

        async def once() -> RunSummary:
            async with open_app(load(config)) as app:
                return await run_once(app, "backfill", asyncio.Event(), watch)

        summary: RunSummary = asyncio.run(once())
        facts: Any = summary.as_dict()["index"]
        return summary, facts

    def assert_repaired(self) -> None:
        assert state_of(self.index.ledger)["flags"] == self.expected["flags"], "flags are lost"
        faults = index_faults(self.index.ledger, self.kind, self.url)
        assert faults == [], "\n".join(faults[:10])


@pytest.fixture(scope="module")
def undisturbed(corpus: Path, tmp_path_factory: pytest.TempPathFactory, fast: None) -> State:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("undisturbed")
        patch.chdir(folder)
        Scene("sqlite", "", corpus, folder, {}).run()
    state = state_of(folder / "neardup.db")
    assert len(state["flags"]) >= 2 * STORIES // COPY_EVERY - 1
    return state


@pytest.fixture(params=KINDS)
def scene(request: pytest.FixtureRequest, redis_url: str, corpus: Path, undisturbed: State, tmp_path: Path) -> Scene:
    return Scene(request.param, redis_url, corpus, tmp_path / "run", undisturbed)


@damaged(0)
def test_damage_before_a_run_is_repaired_before_its_lookups(
    label: str, scene: Scene, record_row: Callable[[Row], None]
) -> None:
    scene.run(manifest="first.csv")
    REPAIRED[label](scene.index)
    with capture_logs() as lines:
        _, facts = scene.run()
    scene.assert_repaired()
    events = [line["event"] for line in lines if line["log_level"] == "warning"]
    assert len(events) == 1 and "the index has lost" in events[0], f"one line says what was repaired: {events}"
    assert facts["looked_up_again"] == 0, "the stories of the first run had been looked up in a whole index"
    record_row(make_row(f"index: {label}, before a run", 1, Said("the index has lost", len(events))))


@damaged(1)
def test_damage_during_a_run_is_repaired_and_loses_no_flag(
    label: str, scene: Scene, record_row: Callable[[Row], None]
) -> None:
    done: list[int] = []

    def watch(progress: Progress) -> None:
        if not done and progress.counts.listed > STORIES // 2:
            done.append(progress.counts.listed)
            REPAIRED[label](scene.index)

    with capture_logs() as lines:
        summary, _ = scene.run(watch)
    assert done, "nothing was damaged"
    assert summary.status == "done"
    scene.assert_repaired()
    said = Said("the index has lost", sum("the index has lost" in line["event"] for line in lines))
    record_row(make_row(f"index: {label}, during a run", 1, said))


def test_one_lost_bucket_is_written_again_without_a_rebuild(scene: Scene) -> None:
    scene.run()
    scene.index.delete(scene.index.keys("*:????")[:1])
    _, facts = scene.run()
    assert facts["rebuilds"] == 0 < facts["restored"], facts
    scene.assert_repaired()


def test_foreign_members_of_buckets_change_nothing(scene: Scene) -> None:
    scene.run(manifest="first.csv")
    index_damage.foreign_members(scene.index)
    _, facts = scene.run()
    assert state_of(scene.index.ledger)["flags"] == scene.expected["flags"]
    assert (facts["rebuilds"], facts["missing"]) == (0, 0)


def test_a_loss_before_a_kill_loses_no_flag(scene: Scene) -> None:
    """The next run looks up again what the killed one looked up in a damaged index."""
    done: list[int] = []

    def watch(progress: Progress) -> None:
        listed = progress.counts.listed
        if not done and listed > STORIES // 2:
            done.append(listed)
            share_of_buckets(0.3)(scene.index)
        if listed > STORIES * 3 // 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scene.run(watch)
    _, facts = scene.run()
    assert facts["looked_up_again"] > 0, facts
    scene.assert_repaired()


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
