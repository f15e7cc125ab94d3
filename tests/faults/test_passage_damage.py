"""A passage index that is damaged or lost is repaired within one run, from the pages, and no flag is lost."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from neardup.app import open_app, run_once
from neardup.config import load
from neardup.index.passages.segment import Segment
from neardup.ledger import files
from neardup.ops.backup import back_up
from neardup.pipeline.summary import Progress, RunSummary
from structlog.testing import capture_logs

from tests.support.command import Neardup
from tests.support.faults.bed import impatient
from tests.support.faults.consistency import PASSAGES, State, state_of
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.faults.index_damage import KINDS
from tests.support.generated_stories import Planted, configuration, plant
from tests.support.sampling import CHAOS

HALF = 80  # of the planted stories


def kinds_at(turn: int) -> list[str]:
    """The kinds of damage at one of two times: all in `make chaos`, else every second one."""
    return [*KINDS] if CHAOS > 1 else [*KINDS][turn::2]


@pytest.fixture(autouse=True, scope="module")
def fast() -> Iterator[None]:
    with impatient():
        yield


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """Planted passages; `half.csv` lists the first HALF of the stories of all languages, in turns."""
    planted = plant(tmp_path_factory.mktemp("planted"))
    head, *rows = (planted.folder / "manifest.csv").read_text(encoding="utf-8").splitlines()
    half = [row for n, row in enumerate(rows) if n % 2]
    (planted.folder / "half.csv").write_text("\n".join([head, *half]) + "\n", encoding="utf-8")
    return planted


class Scene(Struct):
    """A ledger of its own, and runs over the planted stories; `expected` is the undisturbed state."""

    planted: Planted
    folder: Path
    expected: State

    @property
    def ledger(self) -> Path:
        return self.folder / "neardup.db"

    @property
    def passages(self) -> Path:
        return self.folder / "neardup.db.passages"

    def configure(self, manifest: str = "manifest.csv") -> Path:
        """Write the configuration; returns its path."""
        self.folder.mkdir(exist_ok=True)
        text = configuration(self.planted.folder).replace("manifest.csv", manifest)
        text = text.replace("neardup.db", str(self.ledger))
        config = self.folder / "config.toml"
        config.write_text(f"{text}\n[run]\nbatch = 16\nqueue = 16\nworkers = 4\n", encoding="utf-8")
        return config

    def run(self, manifest: str = "manifest.csv", watch: Callable[[Progress], None] = lambda _: None) -> RunSummary:
        config = self.configure(manifest)

        async def once() -> RunSummary:
            async with open_app(load(config)) as app:
                return await run_once(app, "backfill", asyncio.Event(), watch)

        summary: RunSummary = asyncio.run(once())
        assert summary.status == "done"
        return summary

    def assert_repaired(self) -> None:
        actual = state_of(self.ledger)
        for name in ("stories", "flags", PASSAGES):
            assert actual[name] == self.expected[name], name


@pytest.fixture(scope="module")
def undisturbed(planted: Planted, tmp_path_factory: pytest.TempPathFactory, fast: None) -> Scene:
    scene = Scene(planted, tmp_path_factory.mktemp("undisturbed"), {})
    scene.run("half.csv")
    shutil.copytree(scene.folder, scene.folder / "half")
    scene.run()
    scene.expected = state_of(scene.ledger)
    assert len(scene.expected["flags"]) >= len(planted.pairs)
    return scene


@pytest.fixture
def scene(undisturbed: Scene, tmp_path: Path) -> Scene:
    """A ledger after a run over half of the stories."""
    shutil.copytree(undisturbed.folder / "half", tmp_path / "run")
    return Scene(undisturbed.planted, tmp_path / "run", undisturbed.expected)


def test_the_undisturbed_state_is_whole(undisturbed: Scene) -> None:
    undisturbed.assert_repaired()


@pytest.mark.parametrize("kind", kinds_at(0))
def test_damage_before_a_run_is_repaired(kind: str, scene: Scene, record_row: Callable[[Row], None]) -> None:
    KINDS[kind](scene.passages)
    with capture_logs() as lines:
        scene.run()
    scene.assert_repaired()
    warnings = {line["event"] for line in lines if line["log_level"] == "warning"}
    assert warnings and all("passage index" in event for event in warnings), warnings
    record_row(make_row(f"passages: {kind}, before a run", 1, Said("warning: passage index", len(warnings))))


@pytest.mark.parametrize("kind", kinds_at(1))
def test_damage_during_a_run_loses_no_flag(kind: str, scene: Scene, record_row: Callable[[Row], None]) -> None:
    damaged: list[int] = []

    def watch(progress: Progress) -> None:
        if not damaged and progress.counts.fingerprinted > HALF // 4:
            damaged.append(progress.counts.fingerprinted)
            KINDS[kind](scene.passages)

    with capture_logs() as lines:
        scene.run(watch=watch)
    assert damaged, "nothing was damaged"
    scene.assert_repaired()
    said = Said("warning: passage index", sum("passage index" in line["event"] for line in lines))
    record_row(make_row(f"passages: {kind}, during a run", 1, said))


def test_an_index_of_another_ledger_is_refused(scene: Scene, undisturbed: Scene) -> None:
    shutil.rmtree(scene.folder)
    scene.folder.mkdir()
    shutil.copytree(undisturbed.passages, scene.passages)
    with pytest.raises(Exception, match="another ledger"):
        scene.run()


@pytest.mark.parametrize("segments", ["newer", "copied", "lost"])
def test_a_ledger_restored_from_a_copy_heals(segments: str, scene: Scene) -> None:
    copy = scene.folder / "copy.db"
    back_up(scene.ledger, copy)
    scene.run()
    for path in scene.folder.glob("neardup.db*"):
        if path.is_file():
            path.unlink()
    shutil.copy(copy, scene.ledger)
    if segments != "newer":
        shutil.rmtree(scene.passages)
    if segments == "copied":
        shutil.copytree(files.name_passages_folder(copy), scene.passages)
    with capture_logs() as lines:
        scene.run()
    scene.assert_repaired()
    warnings = [line["event"] for line in lines if "passage index" in line["event"]]
    assert (warnings == []) == (segments == "copied"), warnings


def test_a_second_backup_copies_only_new_segments(scene: Scene) -> None:
    copy = scene.folder / "copy.db"
    sizes = back_up(scene.ledger, copy)
    folder = files.name_passages_folder(copy)
    [first] = folder.iterdir()
    before = first.stat().st_ino
    assert back_up(scene.ledger, copy) == sizes
    assert first.stat().st_ino == before
    KINDS["flipped bits"](folder)
    assert back_up(scene.ledger, copy) == sizes
    assert first.read_bytes() == (scene.passages / first.name).read_bytes(), "a damaged copy was not replaced"
    KINDS["flipped bits"](scene.passages)
    back_up(scene.ledger, copy)
    assert not list(folder.glob("*changed*"))
    Segment(first).verify()
    scene.run()
    back_up(scene.ledger, copy)
    assert {path.name for path in folder.iterdir()} == {path.name for path in scene.passages.iterdir()}


def test_reindex_reads_only_what_is_missing(scene: Scene) -> None:
    neardup = Neardup(scene.folder, {})
    scene.configure()
    passages = state_of(scene.ledger)[PASSAGES]
    before = len(passages)
    undamaged = neardup("reindex", "--json")
    assert undamaged.facts == {"indexed": before, "read_again": {}}
    KINDS["flipped bits"](scene.passages)
    doctor = neardup("doctor")
    assert "WARN passages: 1 damaged segment with" in doctor.out, doctor.out
    assert neardup("reindex", "--json").facts == {"indexed": before, "read_again": {"read": before}}
    assert state_of(scene.ledger)[PASSAGES] == passages
    assert "every checksum is right" in neardup("doctor").out
