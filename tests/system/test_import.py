"""`import` puts exported fingerprints and flags into an empty deployment, which then goes on as the first one does.

`export --fingerprints` writes what the ledger and the passage index hold of each story, in all languages.
"""

import csv
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.core.fingerprint.version import PINNED_ALGORITHM
from neardup.core.languages import PINNED
from neardup.core.verify.tiers import EXACT
from neardup.errors import Misuse
from neardup.ledger import connect, flags, imports, now_ms, removed_texts, stories, verdicts
from neardup.moderation.export.formats import type_times
from neardup.moderation.export.tables import export_row, make_whole_row
from neardup.ops.fingerprints import read_flag
from neardup.records import Fingerprinted, Story, Verdict
from pyarrow import parquet

from tests.support.builders import commit, fingerprint_of, flag_spans, ledger_in_memory
from tests.support.command import Ended, Neardup, assert_one_line, embedded
from tests.support.faults.command_driver import Driver, StartedCommand, command_driver
from tests.support.faults.consistency import PASSAGES, SOME_INDEXES, differences, draw_index, index_faults, state_of
from tests.support.faults.kill_campaign import redis_for
from tests.support.languages import HINDI, SAMPLED
from tests.support.paths import SAMPLES
from tests.support.samples import ROWS
from tests.support.sampling import CHAOS
from tests.support.verdicts import give_verdict, undo

NEW = {int(row["id"]) for row in ROWS if int(row["id"]) % 1000 in {1, 2}}  # listed after the import
KILLS = 2  # of each import
STATUSES = ("open", "withdrawn", "plagiarism", "template")
NOT_IMPORTED = {"near misses"}  # nothing depends on them but `neardup replay`
SCORES = "a, b, kind, hamming, jaccard, containment_a, containment_b, signals, spans_a, spans_b"
OTHERS = "severity, strength, joins_clusters, status, by_passages, same_author, case_id"
FLAGS = f"SELECT {SCORES}, {OTHERS} FROM flags ORDER BY a, b"
SIMILARITIES = "SELECT * FROM similarities ORDER BY story_id"
COMMON = "SELECT language, hash FROM common_passages ORDER BY 1, 2"


def deployment(folder: Path, *, lists_new: bool = False) -> Neardup:
    """A deployment that lists the samples, the NEW ones only if they are asked for."""
    neardup = Neardup(folder, {})
    with (folder / "stories.csv").open("w", encoding="utf-8") as file:
        out = csv.DictWriter(file, ROWS[0].keys())
        out.writeheader()
        out.writerows(row for row in ROWS if lists_new or int(row["id"]) not in NEW)
    neardup.configure(embedded(folder / "stories.csv"))
    return neardup


def query(neardup: Neardup, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(neardup.ledger)) as db:
        return db.execute(sql).fetchall()


def assert_equal(actual: Neardup, expected: Neardup, *but: str, index: str = "sqlite", url: str = "") -> None:
    """Both hold the same stories, passages, flags with scores and spans, verdicts, similarities and common passages."""
    states = [{k: v for k, v in state_of(bed.ledger).items() if k not in but} for bed in (actual, expected)]
    assert differences(*states) == []
    assert index_faults(actual.ledger, index, url) == []
    for sql in (FLAGS, SIMILARITIES, COMMON):
        assert query(actual, sql) == query(expected, sql), f"not the same rows: {sql}"


Done = Callable[..., StartedCommand]


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    with command_driver() as driver:
        yield driver


@pytest.fixture(scope="module")
def do(driver: Driver) -> Done:
    """Runs a command of a deployment, which must end well, in a process that has imported the program already."""

    def done(neardup: Neardup, *arguments: str) -> StartedCommand:
        run = driver.start(neardup.folder, *arguments)
        assert run.wait() == 0, run.stderr()
        return run

    return done


@pytest.fixture(scope="module")
def first(do: Done, tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """A deployment after a backfill without the NEW stories, with two verdicts; `folder`/exported has its exports."""
    neardup = deployment(tmp_path_factory.mktemp("first"))
    do(neardup, "backfill")
    with closing(connect(neardup.ledger)) as db:
        rows = [dict(row) for row in flags.select(db)]
        for row, verdict in zip(rows, (Verdict.PLAGIARISM, Verdict.TEMPLATE), strict=False):
            seen = verdicts.identify_state(db, [row["flag_id"]])
            verdicts.decide(db, [row["flag_id"]], verdict, "as seen", "Asha", seen)
    exported = neardup.folder / "exported"
    for name in ("fingerprints", "flags"):
        (exported / name).mkdir(parents=True)
    do(neardup, "export", "--fingerprints", str(exported / "fingerprints" / "all.parquet"))
    chosen = [option for status in STATUSES for option in ("--status", status)]
    do(neardup, "export", "--same-author", *chosen, "-o", str(exported / "flags" / "all.parquet"))
    return neardup


@pytest.fixture(scope="module")
def in_parts(first: Neardup, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exports of `first`, the fingerprints in files of a few stories, so that an import has many transactions."""
    folder = tmp_path_factory.mktemp("parts") / "exported"
    shutil.copytree(first.folder / "exported", folder)
    whole = folder / "fingerprints" / "all.parquet"
    table = parquet.read_table(whole)
    for start in range(0, len(table), 8):
        parquet.write_table(table.slice(start, 8), folder / "fingerprints" / f"part-{start:03}.parquet")
    whole.unlink()
    return folder


@given(st.lists(st.sampled_from([*Verdict, None]), max_size=5))
@example([Verdict.PLAGIARISM, Verdict.QUOTATION, None])
def test_an_imported_flag_has_the_verdict_that_stands(steps: list[Verdict | None]) -> None:
    """None undoes the last verdict that stands."""
    with closing(ledger_in_memory()) as here, closing(ledger_in_memory()) as there:
        for db in (here, there):
            stated = [Story(number, HINDI, author_id=f"author {number}", published_at=number) for number in (1, 2)]
            commit(db, *(Fingerprinted(story, fingerprint_of(bytes([85] * 16)), None) for story in stated))
            removed_texts.keep_for(db, 30, now_ms())
        flag_spans(here, 1, 2, EXACT)
        decisions = list[int]()
        for verdict in steps:
            if verdict is not None:
                decisions.append(give_verdict(here, [(1, 2)], verdict))
            elif decisions:
                undo(here, decisions.pop())
        row = flags.read_pair(here, 1, 2)
        assert row is not None
        exported = make_whole_row(here, export_row(row, {}))
        imported = read_flag(type_times(exported), "v", now_ms())
        assert imported is not None and imports.put_flags(there, [imported]) == 1
        standing = "SELECT status, verdict FROM flags LEFT JOIN active_verdicts USING (a, b)"
        assert there.execute(standing).fetchall() == here.execute(standing).fetchall()
        stories.erase(there, [2])
        remembered = there.execute("SELECT count(*) FROM removed_texts").fetchone() == (1,)
        assert remembered == (row["status"] == Verdict.PLAGIARISM)


Make = Callable[[], Neardup]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes an empty deployment."""

    def made() -> Neardup:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return deployment(folder)

    return made


def test_a_daily_run_after_an_import_flags_what_it_flags_after_a_backfill(
    first: Neardup, in_parts: Path, make: Make, do: Done, tmp_path: Path
) -> None:
    second = make()
    facts = do(second, "import", "--json", str(in_parts)).facts()
    assert {name: facts[name] for name in ("stories", "known", "sweep_owed")} == {
        "stories": len(ROWS) - len(NEW),
        "known": 0,
        "sweep_owed": False,
    }
    assert {language for (language,) in query(second, "SELECT name FROM languages WHERE stories")} >= set(SAMPLED)
    assert_equal(second, first, *NOT_IMPORTED)

    again = tmp_path / "backfilled"
    shutil.copytree(first.folder, again)
    for folder in (again, second.folder):
        neardup = deployment(folder, lists_new=True)
        facts = do(neardup, "daily", "--json", "--since", "2020-01-01T00:00:00Z").facts()
        assert facts["fingerprinted"] == len(NEW), "a story that was imported was fingerprinted again"
    assert_equal(second, Neardup(again, {}), *NOT_IMPORTED)
    assert len(query(second, FLAGS)) > len(query(first, FLAGS)), "no new story was flagged"


@pytest.mark.parametrize("index", SOME_INDEXES)
def test_an_import_that_is_killed_and_run_again_ends_as_if_undisturbed(
    index: str, first: Neardup, in_parts: Path, *, make: Make, driver: Driver, tmp_path: Path
) -> None:
    index = draw_index(index)
    rng, statements = random.Random(index), list[int]()
    for kills in (0, *CHAOS * (KILLS,)):
        with redis_for(index, tmp_path) as url:
            neardup = make()
            layout = f'layout = "{index}"\n' if url else ""
            text = embedded(neardup.folder / "stories.csv", index=url or "sqlite:")
            neardup.configure(text.replace("[ledger]", f"{layout}[ledger]"))
            for most in statements[:kills]:  # those of an import of everything, then of one that finds it on record
                at = {"point": "a statement", "nth": rng.randint(1, most)}
                code = driver.start(neardup.folder, "import", str(in_parts), at=at).wait()
                assert code == -9, f"an import that was to be killed at {at} ended with {code}"
            for _ in range(1 if kills else 2):
                run = driver.start(neardup.folder, "import", "--json", str(in_parts))
                assert run.wait() == 0, run.stderr()
                statements.append(run.reached_points()["a statement"])
            assert_equal(neardup, first, *NOT_IMPORTED, index=index, url=url)
            assert kills or run.facts()["known"] == len(ROWS) - len(NEW), "a second import added a story"


def test_without_flags_a_sweep_is_owed_and_finds_them(first: Neardup, make: Make, do: Done) -> None:
    second = make()
    done = do(second, "import", str(first.folder / "exported" / "fingerprints" / "all.parquet"))
    assert "neardup sweep" in done.stdout()
    do(second, "sweep")
    scores = f"SELECT {SCORES} FROM flags ORDER BY a, b"
    assert query(second, scores) == query(first, scores)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("language", "KLINGON"),
        ("version", "0123456789abcdef 0123456789abcdef"),
        ("simhash", b"short"),
        ("passages", b"123"),
    ],
)
def test_a_row_that_does_not_fit_is_refused_by_name(
    column: str, value: object, first: Neardup, make: Make, driver: Driver
) -> None:
    rows = parquet.read_table(first.folder / "exported" / "fingerprints" / "all.parquet").to_pylist()
    rows[-1][column] = value
    second = make()
    path = second.folder / "changed.parquet"
    loose = {"text_hash": pa.binary(), "simhash": pa.binary()}
    names = list(rows[0])
    table = pa.Table.from_pylist(rows)
    for name, type_ in loose.items():
        table = table.set_column(names.index(name), name, pa.array([row[name] for row in rows], type_))
    parquet.write_table(table, path)
    run = driver.start(second.folder, "import", str(path))
    assert_one_line(Ended(run.wait() or 0, run.stdout(), run.stderr()), 2, value if isinstance(value, str) else column)
    assert query(second, "SELECT count(*) FROM stories") == [(0,)]


@pytest.mark.parametrize("column", ["flagged_at", "decided_at"])
def test_flags_with_texts_as_times_are_refused_before_anything_is_written(
    column: str, first: Neardup, make: Make, driver: Driver
) -> None:
    second = make()
    folder = shutil.copytree(first.folder / "exported", second.folder / "exported")
    table = parquet.read_table(folder / "flags")
    place = table.column_names.index(column)
    table = table.set_column(place, column, table.column(column).cast(pa.string()))
    parquet.write_table(table, folder / "flags" / "all.parquet")
    run = driver.start(second.folder, "import", str(folder))
    assert_one_line(Ended(run.wait() or 0, run.stdout(), run.stderr()), 2, "all.parquet", column)
    assert query(second, "SELECT count(*) FROM stories") == [(0,)]


@pytest.mark.parametrize("wrong", [{"flagged_at": "2026-01-01T00:00:00Z"}, {"story_spans": f"[[0, {2**40}]]"}])
def test_a_row_that_describes_no_flag_is_refused(wrong: dict[str, object]) -> None:
    row: dict[str, object] = {"story_id": 1, "matched_id": 2, "kind": "exact", "hamming": 0}
    assert read_flag(row, "v", 0) is not None
    with pytest.raises(Misuse, match="not what an export writes"):
        read_flag(row | wrong, "v", 0)


def test_a_folder_without_fingerprints_is_refused(make: Make, driver: Driver) -> None:
    run = driver.start(make().folder, "import", str(SAMPLES))
    assert_one_line(Ended(run.wait() or 0, run.stdout(), run.stderr()), 2, "no Parquet file")


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
