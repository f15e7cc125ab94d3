"""Slots of a Redis cluster move, or a master dies, during a backfill: the run waits and ends as undisturbed."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from neardup.app import open_app, run_once
from neardup.config import load
from neardup.pipeline.index_sync import IndexWait
from neardup.pipeline.summary import Progress, RunSummary
from structlog.testing import capture_logs

from tests.support.command import embedded
from tests.support.faults.consistency import State, differences, state_of
from tests.support.faults.fault_table import Row, find_said, make_row
from tests.support.faults.redis_cluster import MASTERS, Cluster, three_masters
from tests.support.languages import CODES, HINDI
from tests.support.sampling import crossed, some_of

MIDWAY = 30  # of the 61 samples
LAYOUTS = ("documented", "compact")


@pytest.fixture(autouse=True)
def reported(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a run reports that it waits for the index."""
    event, report = threading.Event(), IndexWait._report

    async def report_and_set(self: IndexWait, caller: object, why: str) -> None:
        await report(self, caller, why)
        event.set()

    monkeypatch.setattr(IndexWait, "_report", report_and_set)
    return event


@pytest.fixture
def record_wait(record_row: Callable[[Row], None]) -> Iterator[Callable[[str], None]]:
    """Adds a row to the fault table of a fault through which the run said that it waits."""
    with capture_logs() as lines:
        yield lambda fault: record_row(make_row(f"Redis cluster: {fault}", 1, find_said("waiting", str(lines))))


def backfill(folder: Path, index: str, layout: str, watch: Callable[[Progress], None]) -> RunSummary:
    folder.mkdir()
    config = embedded(index=index).replace("[ledger]", f'layout = "{layout}"\n[ledger]')
    path = folder / "config.toml"
    path.write_text(f"{config}[run]\nbatch = 8\nqueue = 8\nworkers = 4\n", encoding="utf-8")

    async def once() -> RunSummary:
        async with open_app(load(path)) as opened:
            return await run_once(opened, "backfill", asyncio.Event(), watch)

    return asyncio.run(once())


def once_midway(action: Callable[[], None]) -> Callable[[Progress], None]:
    done: list[int] = []

    def watch(progress: Progress) -> None:
        if not done and progress.counts.listed >= MIDWAY:
            done.append(progress.counts.listed)
            action()

    return watch


def key_of(layout: str) -> str:
    """A key of the buckets of HINDI, which all share a slot."""
    return f"{{{HINDI if layout == 'documented' else CODES[HINDI]}}}"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> State:
    """The state after a backfill without faults."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    backfill(folder, "sqlite:", "documented", lambda _: None)
    return state_of(folder / "neardup.db")


def assert_undisturbed(folder: Path, undisturbed: State) -> None:
    faults = differences(state_of(folder / "run" / "neardup.db"), undisturbed)
    assert faults == [], "\n".join(faults[:20])


@pytest.fixture
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    with three_masters(tmp_path, replicas=getattr(request, "param", False)) as cluster:
        yield cluster


@pytest.mark.parametrize("layout", some_of(LAYOUTS, 1, 1))
def test_a_run_waits_while_a_slot_is_moved(  # noqa: PLR0917
    layout: str,
    cluster: Cluster,
    reported: threading.Event,
    tmp_path: Path,
    undisturbed: State,
    record_wait: Callable[[str], None],
) -> None:
    move = cluster.begin_move(key_of(layout))

    def finish() -> None:
        assert reported.wait(60), "the run did not wait"
        next(move, None)

    finishing = threading.Thread(target=finish)

    def begin() -> None:
        next(move)
        finishing.start()

    summary = backfill(tmp_path / "run", cluster.url, layout, once_midway(begin))
    finishing.join()
    assert summary.status == "done"
    assert_undisturbed(tmp_path, undisturbed)
    record_wait("a slot moved to another node")


@pytest.mark.parametrize("layout", some_of(LAYOUTS, 2, 1))
def test_slots_moved_in_an_instant_cost_nothing(
    layout: str, cluster: Cluster, tmp_path: Path, undisturbed: State
) -> None:
    def move() -> None:
        for code in (*CODES,) if layout == "documented" else (*CODES.values(),):
            list(cluster.begin_move(f"{{{code}}}"))

    assert backfill(tmp_path / "run", cluster.url, layout, once_midway(move)).status == "done"
    assert_undisturbed(tmp_path, undisturbed)


@pytest.mark.parametrize("cluster", [True], indirect=True)
@pytest.mark.parametrize("layout", some_of(LAYOUTS, 3, 1))
def test_a_replica_takes_over_from_a_killed_master(
    layout: str, cluster: Cluster, tmp_path: Path, undisturbed: State, record_wait: Callable[[str], None]
) -> None:
    victim = next(node for node in cluster.nodes[1:MASTERS])
    assert backfill(tmp_path / "run", cluster.url, layout, once_midway(victim.kill)).status == "done"
    assert_undisturbed(tmp_path, undisturbed)
    record_wait("a master killed, its replica takes over")


@pytest.mark.parametrize("cluster", [True], indirect=True)
@pytest.mark.parametrize("layout", some_of(LAYOUTS, 4, 1))
def test_a_replica_that_lags_takes_over_from_a_killed_master(
    layout: str, cluster: Cluster, tmp_path: Path, undisturbed: State, record_wait: Callable[[str], None]
) -> None:
    victim = next(node for node in cluster.nodes[1:MASTERS])
    replica = cluster.replica_of(victim)
    replica.stop_replicating()

    def kill() -> None:
        assert replica.execute("DBSIZE") < victim.execute("DBSIZE"), "the replica does not lag"
        victim.kill()

    assert backfill(tmp_path / "run", cluster.url, layout, once_midway(kill)).status == "done"
    assert_undisturbed(tmp_path, undisturbed)
    record_wait("a master killed, a replica that lags takes over")


@pytest.mark.parametrize(("how", "layout"), crossed(["a new node takes its slots", "it returns empty"], LAYOUTS))
def test_a_killed_master_is_replaced_without_its_data(  # noqa: PLR0917
    how: str,
    layout: str,
    cluster: Cluster,
    reported: threading.Event,
    undisturbed: State,
    record_wait: Callable[[str], None],
) -> None:
    dead, folder = cluster.nodes[2], cluster.nodes[0].folder.parent

    def replace() -> None:
        assert reported.wait(60), "the run did not wait"
        if how == "a new node takes its slots":
            cluster.replace(dead)
        else:
            dead.start()

    replacing = threading.Thread(target=replace)

    def kill() -> None:
        dead.kill()
        replacing.start()

    summary = backfill(folder / "run", cluster.url, layout, once_midway(kill))
    replacing.join()
    assert summary.status == "done"
    assert_undisturbed(folder, undisturbed)
    record_wait(f"a master killed, {how}")
