"""Laws: a pair is exported once, with the story published earlier (or else with the lower id) as its match, in whatever
order the stories arrived; values read back unchanged; and a file is written atomically.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.columns import Outcomes
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.errors import Fatal
from neardup.ledger import cases, flags, stories
from neardup.ledger.flags import Selection
from neardup.moderation.export.formats import guard_text
from neardup.moderation.export.tables import PAIR_COLUMNS
from neardup.moderation.export.target import write_atomically
from neardup.moderation.export.write import ExportOptions, write
from neardup.option_values import FORMATS, Format
from neardup.records import Fingerprinted, Language, Story, format_time

from tests.support.builders import fingerprint_of, ledger_in_memory, matches, verify_pending
from tests.support.exported_pairs import of_csv, read_csv, read_jsonl
from tests.support.languages import BENGALI, ENGLISH, GUJARATI, HINDI, MALAYALAM, PUNJABI, TAMIL, TEXTS
from tests.support.sampling import count_examples

COLUMN_CONTRACT = (
    "flag_id kind language story_id matched_id similarity hamming jaccard containment matched_containment "
    "longest_run_words story_title matched_title story_author_id matched_author_id same_author "
    "story_published_at matched_published_at earlier_id status flagged_at fingerprint_version cluster_id "
    "cluster_size estimated context story_path matched_path copied_words publication_order story_updated_at "
    "matched_updated_at story_known_since matched_known_since verdict moderator note decided_at undone_at undone_by "
    "catalogue licence permission_id permission_licence permission_until story_serial matched_serial"
)
NOON = 1_795_176_000_000
opened: list[sqlite3.Connection] = []
published = st.none() | st.sampled_from([NOON, NOON + 1, NOON - 86_400_000, -1, 0])
titles = st.none() | st.text(st.characters(codec="utf-8"), min_size=1)


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while opened:
        opened.pop().close()


def ledger(*listed: Story) -> sqlite3.Connection:
    """A ledger of copies of one text, each pair flagged."""
    db = ledger_in_memory()
    opened.append(db)
    add(db, *listed)
    return db


def add(db: sqlite3.Connection, *listed: Story) -> None:
    story_ids = [row[0] for row in db.execute("SELECT id FROM stories")]
    for story in listed:
        made = Fingerprinted(story, fingerprint_of(b"t" * 16), None)
        pairs = [(min(story.id, n), max(story.id, n)) for n in story_ids]
        stories.commit(db, stories.Batch(Outcomes.of([made]), matches(pairs), 1, {}, None))
        story_ids.append(story.id)
    verify_pending(db, "v1")


def exported(db: sqlite3.Connection, form: Format = "jsonl", *, only_new: bool = False) -> list[Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "flags"
        exported_ids = write(db, path, ExportOptions(form, Selection(only_new=only_new)), SHIPPED)
        rows = (read_csv if form == "csv" else read_jsonl)(path)
    assert [str(row["flag_id"]) for row in rows] == [str(n) for n in exported_ids]
    return rows


def exported_pairs(rows: Iterable[dict[str, Any]]) -> set[tuple[int, int, int | None]]:
    return {(row["story_id"], row["matched_id"], row["earlier_id"]) for row in rows}


@settings(deadline=None, max_examples=count_examples(50))
@given(st.lists(published, min_size=2, max_size=4), st.data())
def test_pair_is_exported_once_with_the_earlier_match(times: list[int | None], data: st.DataObject) -> None:
    listed = [Story(10 + n, TAMIL, published_at=at) for n, at in enumerate(times)]
    rank = {story.id: (story.published_at is None, story.published_at or 0, story.id) for story in listed}
    at = {story.id: story.published_at for story in listed}
    expected = {
        (b, a, a if None not in (at[a], at[b]) and at[a] != at[b] else None)
        for a, b in permutations(rank, 2)
        if rank[a] < rank[b]
    }
    rows = exported(ledger(*data.draw(st.permutations(listed))))
    assert len(rows) == len(expected)
    assert exported_pairs(rows) == expected


@settings(deadline=None, max_examples=count_examples(50))
@given(titles, titles, st.sampled_from(LANGUAGES), st.sampled_from(["csv", "jsonl"]))
def test_titles_read_back_unchanged(first: str | None, second: str | None, language: Language, form: Format) -> None:
    db = ledger(Story(1, language, title=first, author_id="a"), Story(2, language, title=second, author_id="b"))
    for row in exported(db, form):
        assert (row["language"], str(row["matched_id"]), str(row["story_id"])) == (language, "1", "2")
        for column, title in (("matched_title", first or "1"), ("story_title", second or "2")):
            if form == "jsonl":
                assert row[column] == title
            else:
                assert row[column] == guard_text(title)
                assert not row[column].startswith(("=", "+", "-", "@", "\t", "\r")), "a spreadsheet would run it"


@settings(deadline=None)
@given(st.integers(-2_208_988_800_000, 4_102_444_800_000))
def test_times_read_back_unchanged(milliseconds: int) -> None:
    written = format_time(milliseconds) or ""
    assert written.endswith("Z")
    assert ("." in written) == (milliseconds % 1000 > 0)
    assert datetime.fromisoformat(written) - datetime(1970, 1, 1, tzinfo=UTC) == timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_columns_follow_the_contract_in_order(form: Format) -> None:
    db = ledger(Story(1, HINDI), Story(2, HINDI))
    assert list(PAIR_COLUMNS) == COLUMN_CONTRACT.split()
    assert [list(row) for row in exported(db, form)] == [COLUMN_CONTRACT.split()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_columns_of_a_row(language: Language) -> None:
    title = f'{TEXTS[language]}, "\n'
    first = Story(1, language, title=title, author_id="7", published_at=NOON)
    second = Story(2, language, title="b", author_id="7", published_at=NOON - 1)
    db = ledger(first, second)
    known_since = NOON + 5
    db.execute("UPDATE flags SET flagged_at = ?", (NOON,))
    db.execute("UPDATE stories SET known_since = ?", (known_since,))
    want = {
        "flag_id": 1, "kind": "exact", "language": language, "story_id": 1, "matched_id": 2, "similarity": 1.0,
        "hamming": 0, "jaccard": 1.0, "containment": 1.0, "matched_containment": 1.0, "longest_run_words": 100,
        "story_title": title, "matched_title": "b", "story_author_id": "7", "matched_author_id": "7",
        "same_author": True,
        "story_published_at": "2026-11-20T12:00:00Z", "matched_published_at": "2026-11-20T11:59:59.999Z",
        "earlier_id": 2, "status": "open", "flagged_at": "2026-11-20T12:00:00Z", "fingerprint_version": "v1",
        "cluster_id": 2, "cluster_size": 2, "estimated": False,
        "context": None, "story_path": None, "matched_path": None, "copied_words": 100,
        "publication_order": "2 was published less than a second before 1, by the listing",
        "story_updated_at": None, "matched_updated_at": None, "story_known_since": format_time(known_since),
        "matched_known_since": format_time(known_since), "verdict": None, "moderator": None, "note": None,
        "decided_at": None, "undone_at": None, "undone_by": None,
            "catalogue": None, "licence": None,
            "permission_id": None, "permission_licence": None, "permission_until": None,
            "story_serial": None, "matched_serial": None,
    }  # fmt: skip
    assert exported(db) == [want]
    assert exported(db, "csv") == [{column: of_csv(value) for column, value in want.items()}]


@pytest.mark.parametrize(
    ("authors", "same"), [(("7", "7"), True), (("7", "8"), False), ((None, "7"), None), ((None, None), None)]
)
def test_unknown_values_are_empty(authors: tuple[str | None, str | None], same: bool | None) -> None:
    db = ledger(*(Story(n, ENGLISH, author_id=author) for n, author in enumerate(authors)))
    (row,) = exported(db)
    assert (row["same_author"], row["earlier_id"], row["story_published_at"]) == (same, None, None)
    assert exported(db, "csv")[0]["same_author"] == {True: "true", False: "false", None: ""}[same]


def test_only_new_skips_exported_flags() -> None:
    db = ledger(*(Story(n, BENGALI) for n in (1, 2)))
    assert exported_pairs(exported(db, only_new=True)) == exported_pairs(exported(db)) == {(2, 1, None)}, (
        "writing marked flags"
    )
    flags.mark_exported(db, [row["flag_id"] for row in exported(db, only_new=True)])
    assert exported(db, only_new=True) == []
    add(db, Story(3, BENGALI))
    assert exported_pairs(exported(db, only_new=True)) == {(3, 1, None), (3, 2, None)}
    assert len(exported(db)) == 3, "without only_new a flag is missing"
    stories.forget(db, 2)
    assert exported_pairs(exported(db)) == {(3, 1, None)}, "a forgotten story was exported"


@pytest.mark.parametrize("form", FORMATS)
def test_file_is_written_atomically(tmp_path: Path, form: Format) -> None:
    db = ledger(*(Story(n, PUNJABI, title="ਕਹਾਣੀ\r\n") for n in range(20)))
    path = tmp_path / "new" / "flags"

    def export() -> list[int]:
        return write_atomically(path, lambda file: write(db, file, ExportOptions(form), SHIPPED))

    assert len(export()) == 190
    assert path.stat().st_mode & 0o777 == 0o640
    before = path.read_bytes()
    db.execute("UPDATE flags SET flagged_at = 9223372036854775807 WHERE flag_id = 150")  # out of range for a date
    with pytest.raises((ValueError, OverflowError)):
        export()
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["flags"], "a temporary file was left"


def test_unwritable_file_is_fatal(tmp_path: Path) -> None:
    (tmp_path / "flags.csv" / "x").mkdir(parents=True)
    (tmp_path / "file").touch()
    for path in (tmp_path / "flags.csv", tmp_path / "file" / "flags.csv"):
        with pytest.raises(Fatal, match=r"cannot write .*flags\.csv: "):
            write_atomically(path, lambda file: file.touch())


def test_page_exports_only_the_pairs_it_shows(tmp_path: Path) -> None:
    db = ledger(*(Story(n, MALAYALAM) for n in range(5)))
    assert len(write(db, tmp_path / "flags", ExportOptions("csv"), SHIPPED)) == 10
    cases.refresh(db)
    exported_ids = write(db, tmp_path / "flags.html", ExportOptions("html"), SHIPPED)
    text = (tmp_path / "flags.html").read_text(encoding="utf-8")
    assert (len(exported_ids), text.count("<article"), text.count('id="flag-')) == (5, 1, 5), (
        "pairs that are not shown count as exported"
    )
    assert "And 5 more pairs" in text


def test_withdrawn_and_not_similar_flags_join_no_cluster() -> None:
    db = ledger(*(Story(n, GUJARATI) for n in (1, 2, 3)))
    db.execute("UPDATE flags SET status = 'withdrawn' WHERE a = 1 AND b = 3")
    db.execute("UPDATE flags SET status = 'not_similar' WHERE b = 3")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "flags"
        write(db, path, ExportOptions("jsonl", Selection(statuses=())), SHIPPED)
        rows = read_jsonl(path)
    assert {(row["story_id"], row["cluster_id"], row["cluster_size"]) for row in rows} == {(2, 1, 2), (3, None, None)}
