"""`export --fingerprints` writes what the ledger and the passage index hold of each story, in all languages."""

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from neardup.core.fingerprint.version import PINNED_ALGORITHM
from neardup.core.languages import PINNED
from pyarrow import parquet  # type: ignore[import-untyped]

from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.faults.consistency import PASSAGES, state_of
from tests.support.languages import SAMPLED

STORED = "SELECT s.id, l.name, text_hash, simhash, signature, words, shingles, published_at, updated_at, path, title"
STORED += " FROM stories s JOIN languages l ON l.number = s.language ORDER BY s.id"


@pytest.fixture(scope="module")
def backfilled(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """The samples after a backfill."""
    neardup = Neardup(tmp_path_factory.mktemp("backfilled"), {})
    neardup.configure(embedded())
    assert neardup("backfill").code == 0
    return neardup


def test_every_fingerprint_is_written_as_the_ledger_holds_it(backfilled: Neardup, tmp_path: Path) -> None:
    path = tmp_path / "fingerprints.parquet"
    done = backfilled("export", "--fingerprints", str(path))
    assert done.code == 0, done.err
    rows = sorted(parquet.read_table(path).to_pylist(), key=lambda row: row["id"])
    assert {row["language"] for row in rows} >= set(SAMPLED), "a language has no rows"
    with closing(sqlite3.connect(backfilled.ledger)) as db:
        expected = db.execute(STORED).fetchall()
    columns = ("id", "language", "text_hash", "simhash", "signature", "words", "shingles")
    times = ("published_at", "updated_at")
    assert [
        tuple(row[name] for name in columns)
        + tuple(row[name] and round(row[name].timestamp() * 1000) for name in times)
        + (row["path"], row["title"])
        for row in rows
    ] == expected
    assert [(row["id"], *np.frombuffer(row["passages"], "<u4").tolist()) for row in rows] == state_of(
        backfilled.ledger
    )[PASSAGES]
    assert any(row["passages"] for row in rows)
    assert {row["version"] for row in rows} == {
        f"{PINNED_ALGORITHM} {PINNED[language]}" for language in {row["language"] for row in rows}
    }


def test_a_second_export_writes_the_same_bytes(backfilled: Neardup, tmp_path: Path) -> None:
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path in paths:
        assert backfilled("export", "--fingerprints", str(path)).code == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_an_option_that_selects_flags_is_refused(backfilled: Neardup, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert_one_line(backfilled("export", "--new", "--fingerprints", str(path)), 2, "--fingerprints", "no other option")
    assert not path.exists()


def test_stories_without_passages_on_record_are_refused(backfilled: Neardup, tmp_path: Path) -> None:
    copy = Neardup(tmp_path, {})
    copy.configure(embedded())
    with closing(sqlite3.connect(backfilled.ledger)) as db:
        db.execute("VACUUM INTO ?", (str(copy.ledger),))  # the ledger alone, without its passages
    refused = copy("export", "--fingerprints", str(tmp_path / "a.parquet"))
    assert_one_line(refused, 1, "the passage index lacks", "neardup reindex")


def test_without_a_ledger_nothing_is_written(neardup: Neardup, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    assert_one_line(neardup("export", "--fingerprints", str(path)), 1, "no ledger")
    assert not path.exists()
