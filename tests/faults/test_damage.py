"""A damaged ledger is refused at the start with advice, and a copy restores it without loss."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.errors import Fatal
from neardup.ledger import connect, files

from tests.faults.test_disk import assert_one_error_line
from tests.support.builders import fill_ledger
from tests.support.command import Neardup
from tests.support.faults.fault_table import Row, Said, make_row
from tests.support.generated_stories import configuration, generate
from tests.support.samples import state
from tests.support.sampling import count_examples

STORIES = 3_000
PROBES = 16
Make = Callable[..., Neardup]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed, undamaged ledger."""
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    fill_ledger(path, STORIES, 2500)
    return path


def copy_of(ledger: Path, folder: Path, which: str = "") -> tuple[Path, int, list[int]]:
    """A copy of a ledger to damage, its page size, and the numbers of its pages; `which` is an SQL filter of dbstat."""
    path = Path(shutil.copy(ledger, folder / "damaged.db"))
    with closing(sqlite3.connect(path)) as db:
        (size,) = db.execute("PRAGMA page_size").fetchone()
        pages = [number for (number,) in db.execute(f"SELECT pageno FROM dbstat {which}")]
    return path, size, pages


def overwrite(path: Path, size: int, page: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(data)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


@settings(max_examples=count_examples(60), deadline=None)
@given(rng=st.randoms(use_true_random=False), garbage=st.booleans())
def test_a_lost_page_is_found_at_the_start(sound: Path, folder: Path, rng: random.Random, garbage: bool) -> None:
    path, size, pages = copy_of(sound, folder)
    page = rng.choice(pages)
    overwrite(path, size, page, rng.randbytes(size) if garbage else bytes(size))
    with pytest.raises(Fatal, match="neardup doctor"):
        connect(path)


@settings(max_examples=count_examples(30), deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_a_lost_stretch_of_a_large_ledger_is_found(sound: Path, folder: Path, rng: random.Random) -> None:
    path, size, pages = copy_of(sound, folder, "WHERE name = 'stories' AND pagetype = 'leaf' ORDER BY path")
    stretch = 2 * len(pages) // PROBES + 1
    first = rng.randrange(len(pages) - stretch)
    for page in pages[first : first + stretch]:
        overwrite(path, size, page, bytes(size))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(files, "SMALL_PAGES", 0)
        patched.setattr(files, "PROBES", PROBES)
        connect(sound).close()
        with pytest.raises(Fatal, match="neardup doctor"):
            connect(path)


@pytest.mark.parametrize("size", [100, 5_000, 100_000])
def test_a_truncated_ledger_is_refused(sound: Path, folder: Path, size: int) -> None:
    path, _, _ = copy_of(sound, folder)
    with path.open("r+b") as file:
        file.truncate(size)
    with pytest.raises(Fatal, match="neardup doctor"):
        connect(path)


def rows_until(corpus: Path, name: str, count: int) -> Path:
    """A manifest of the first `count` stories, each updated a minute after the previous one."""
    head, *lines = (corpus / "manifest.csv").read_text(encoding="utf-8").splitlines()
    path = corpus / name
    rows = [
        f"{story},{language},{published},2026-01-0{2 + n // 1440}T{n // 60 % 24:02}:{n % 60:02}:00Z"
        for n, (story, language, published, _) in enumerate(line.split(",") for line in lines[:count])
    ]
    path.write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("index", ["sqlite:", "redis"])
def test_a_copy_replaces_a_damaged_ledger(
    index: str, make_neardup: Make, tmp_path: Path, request: pytest.FixtureRequest, record_row: Callable[[Row], None]
) -> None:
    """With an older ledger and a newer index, the index is rebuilt and the later stories are listed again."""
    url = request.getfixturevalue("redis_url") if index == "redis" else index
    generate(tmp_path, 300)
    some, everything = (rows_until(tmp_path, f"{count}.csv", count) for count in (150, 300))
    undisturbed, neardup = (
        make_neardup(configuration(tmp_path), "undisturbed"),
        make_neardup(configuration(tmp_path, url)),
    )
    assert undisturbed("backfill", NEARDUP_SOURCE__MANIFEST=str(everything)).code == 0
    neardup.env["NEARDUP_SOURCE__MANIFEST"] = str(some)
    copy = neardup.folder / "copy.db"
    assert neardup("backfill").code == 0
    assert neardup("backup", str(copy)).code == 0
    neardup.env["NEARDUP_SOURCE__MANIFEST"] = str(everything)
    assert neardup("daily", "--json").facts["fingerprinted"] == 150

    overwrite(neardup.ledger, 4096, 2, bytes(4096))
    before = neardup.ledger.read_bytes()
    commands = ["daily"], ["sweep"], ["backup", str(copy)], ["export"]
    refused = [neardup(*command) for command in commands]
    for ended in refused:
        assert_one_error_line(ended, "is damaged", "malformed")
    report = neardup("doctor")
    [line] = [line for line in report.out.splitlines() if line.startswith("FAIL ledger")]
    assert (report.code, "to restore it, stop neardup, move" in line) == (1, True), report.out
    assert neardup.ledger.read_bytes() == before, "the damaged ledger was changed"

    for path in neardup.folder.glob("neardup.db*"):
        path.rename(path.with_name(f"damaged-{path.name}"))
    shutil.copy(copy, neardup.ledger)
    restored = neardup("daily", "--json")
    assert restored.code == 0, restored.err
    assert restored.facts["fingerprinted"] == 150, "the later stories were not listed again"
    assert without_index(neardup) == without_index(undisturbed)
    status = neardup("status", "--json").facts["index"]
    assert (status["lag"], status["stories"]) == (0, 300)
    if index == "redis":
        assert "the index has lost data, rebuilding it from the ledger" in restored.err
    said = Said("malformed", sum("malformed" in ended.err for ended in refused))
    lost = 300 - sum(neardup("status", "--json").facts["stories"].values())
    record_row(make_row("ledger: a page lost, restored from a copy", len(commands), said, in_flight=150, lost=lost))


def without_index(neardup: Neardup) -> dict[str, list[tuple[Any, ...]]]:
    """The state without the index: the widths of its buckets depend on the sizes of the languages when it was built."""
    return {name: rows for name, rows in state(neardup).items() if name != "index"}
