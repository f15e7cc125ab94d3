"""A copy made of a damaged ledger never replaces a good one, whichever page or index is damaged."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.errors import Fatal, NeardupError
from neardup.ops.backup import back_up

from tests.faults.test_disk import assert_one_error_line
from tests.support.builders import fill_ledger
from tests.support.command import Neardup
from tests.support.faults.fault_table import Row, find_said, make_row
from tests.support.sampling import count_examples

STORIES = 1_500
PAGE = 4096
INDEX_PAGES = "pagetype = 'leaf' AND name IN ('candidates_b', 'candidates_pending')"  # full of entries to their end


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed, undamaged ledger."""
    path = tmp_path_factory.mktemp("sound") / "ledger.db"
    fill_ledger(path, STORIES, 1200)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("damaged")


def ledger_of(data: bytes, folder: Path) -> Path:
    """A ledger with these bytes, and without the log of the one that was there before."""
    for stale in folder.glob("ledger.db*"):
        stale.unlink()
    path = folder / "ledger.db"
    path.write_bytes(data)
    return path


def pages_of(ledger: Path, which: str) -> list[int]:
    """The numbers of pages; `which` is an SQL filter of dbstat."""
    with closing(sqlite3.connect(ledger)) as db:
        return [number for (number,) in db.execute(f"SELECT pageno FROM dbstat WHERE {which}")]


def flip(path: Path, page: int, rng: random.Random, bits: int) -> None:
    """Flip bits of one page, anywhere in it."""
    with path.open("r+b") as file:
        for _ in range(bits):
            at = (page - 1) * PAGE + rng.randrange(PAGE)
            file.seek(at)
            (byte,) = file.read(1)
            file.seek(at)
            file.write(bytes([byte ^ 1 << rng.randrange(8)]))


def assert_the_copy_is_sound(ledger: Path, copy: Path, previous: bytes) -> None:
    """After a backup the copy is sound: the previous one if the backup failed, or a new one."""
    copy.write_bytes(previous)
    failures = []
    try:
        back_up(ledger, copy)
    except NeardupError as error:
        failures = [str(error)]
    assert "\n" not in "".join(failures)
    if failures:
        assert copy.read_bytes() == previous, f"the copy was replaced although the backup failed: {failures}"
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "a damaged copy replaced a good one"
    assert [path.name for path in copy.parent.glob("*copy*")] == [copy.name], "the backup left files behind"


@settings(max_examples=count_examples(60), deadline=None)
@given(rng=st.randoms(use_true_random=False), bits=st.integers(1, 40), index=st.booleans())
def test_flipped_bits_never_replace_a_good_copy(
    sound: Path, folder: Path, rng: random.Random, bits: int, index: bool
) -> None:
    ledger = ledger_of(sound.read_bytes(), folder)
    flip(ledger, rng.choice(pages_of(sound, INDEX_PAGES if index else "ncell > 0")), rng, bits)
    assert_the_copy_is_sound(ledger, folder / "copy.db", sound.read_bytes())


@pytest.mark.parametrize("command", [("status",), ("backup", "copy.db"), ("daily",)], ids=" ".join)
def test_a_definition_that_is_no_text_is_one_line(neardup: Neardup, sound: Path, command: tuple[str, ...]) -> None:
    """SQLite quotes a damaged definition in its message, which Python then cannot decode."""
    neardup.ledger.write_bytes(sound.read_bytes().replace(b"CREATE TABLE stories", b"CREAT\xd3 TABLE stories"))
    assert_one_error_line(neardup(*command), "malformed database schema", "neardup doctor")
    diagnosis = neardup("doctor")
    assert "malformed database schema; to restore it, stop neardup" in diagnosis.out, diagnosis.err


@settings(max_examples=count_examples(40), deadline=None)
@given(size=st.integers(0, 400_000), zeros=st.booleans())
def test_a_torn_ledger_never_replaces_a_good_copy(sound: Path, folder: Path, size: int, zeros: bool) -> None:
    whole = sound.read_bytes()
    torn = size % len(whole)
    ledger = ledger_of(whole[:torn] + bytes(len(whole) - torn if zeros else 0), folder)
    assert_the_copy_is_sound(ledger, folder / "copy.db", whole)


@pytest.mark.parametrize("which", range(2))
def test_a_lost_index_entry_is_found_in_the_copy(sound: Path, folder: Path, which: int) -> None:
    """SQLite's quick_check does not compare indexes with their tables."""
    previous = sound.read_bytes()
    ledger, copy = ledger_of(previous, folder), folder / "copy.db"
    copy.write_bytes(previous)
    page = pages_of(sound, INDEX_PAGES)[which]
    with ledger.open("r+b") as file:
        file.seek(page * PAGE - 3)
        (byte,) = file.read(1)
        file.seek(page * PAGE - 3)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(Fatal, match="the copy is damaged"):
        back_up(ledger, copy)
    assert copy.read_bytes() == previous


def test_the_command_says_in_one_line_that_a_copy_is_damaged(
    neardup: Neardup, sound: Path, record_row: Callable[[Row], None]
) -> None:
    shutil.copy(sound, neardup.ledger)
    copy = neardup.folder / "copy.db"
    assert neardup("backup", str(copy)).code == 0
    previous = copy.read_bytes()
    [first, *_] = pages_of(neardup.ledger, INDEX_PAGES)
    with neardup.ledger.open("r+b") as file:
        file.seek(first * PAGE - 3)
        file.write(b"\x55")
    failed = neardup("backup", str(copy))
    assert_one_error_line(failed, "the copy is damaged", "neardup doctor")
    assert copy.read_bytes() == previous
    record_row(make_row("backup: a bit of the ledger flipped", 1, find_said("the copy is damaged", failed.err)))
