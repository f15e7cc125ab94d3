"""Laws: an export by story has each story that copies once, the most similar first; one of the members of clusters has
each member once, and in each cluster one to keep; each is equal in every format.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.verify.clusters import POLICIES, Policy
from neardup.core.verify.tiers import NEAR, PARTIAL, PASSAGE
from neardup.ledger import verdicts
from neardup.ledger.flags import Selection
from neardup.moderation.export.tables import IDS, MEMBERS, STORIES
from neardup.moderation.export.write import ExportOptions, write_members, write_stories
from neardup.option_values import FORMATS, Format
from neardup.records import Fingerprinted, Story, Verdict, format_time
from pyarrow import parquet  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser

from tests.support.builders import commit, fingerprint_of, flag_spans, ledger_in_memory, spans_of
from tests.support.exported_pairs import of_csv, read_csv, read_jsonl, read_xlsx
from tests.support.languages import HINDI
from tests.support.verdicts import decide_case

COLUMN_CONTRACT = (
    "story_id language title author_id published_at similarity copied_words words sources top_source_id "
    "top_source_title top_source_author_id top_share kinds path publication_order updated_at "
    "known_since verdict moderator note decided_at undone_at undone_by top_source_catalogue top_source_licence hidden"
)
EVERY = Selection()
NOON = 1_795_176_000_000
KEPT = {"earliest": {2, -1, 8}, "newest": {1, 5, 9}, "longest": {3, -1, 8}, "reference": {2, -1, 8}}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    """Story 3 has half of its 100 words from 1 and 2, story 4 all of them from 1; 2 has a tenth from 1."""
    with closing(ledger_in_memory()) as db:
        for n in range(1, 5):
            story = Story(n, HINDI, f"{n}.html", f"a{n}", title=f"=कथा {n}", published_at=NOON + n)
            commit(db, Fingerprinted(story, fingerprint_of(n.to_bytes(16)), None))
        flag_spans(db, 1, 2, PARTIAL, spans_of((0, 10)), spans_of((5, 15)))
        flag_spans(db, 1, 3, PARTIAL, spans_of((0, 40)), spans_of((10, 50)))
        flag_spans(db, 2, 3, PARTIAL, spans_of((0, 20)), spans_of((40, 60)))
        flag_spans(db, 1, 4, NEAR, spans_of((0, 100)), spans_of((0, 100)))
        db.execute("UPDATE stories SET known_since = ?", (NOON,))
        yield db


def exported(db: sqlite3.Connection, file: Path, form: Format = "jsonl", selection: Selection = EVERY) -> list[Any]:
    ids = write_stories(db, file, ExportOptions(form, selection, by="story"), SHIPPED)
    match form:
        case "jsonl":
            rows: list[Any] = read_jsonl(file)
        case "csv":
            rows = read_csv(file)
        case "xlsx":
            rows = [[cell.value for cell in row] for row in read_xlsx(file)]
        case "parquet":
            rows = parquet.read_table(file).to_pylist()
        case "html":
            rows = LexborHTMLParser(file.read_text(encoding="utf-8")).css("article")
    assert len(ids) == len(rows) - (form == "xlsx")
    return rows


def test_row_of_a_story(db: sqlite3.Connection, tmp_path: Path) -> None:
    rows = exported(db, tmp_path / "stories")
    assert [list(row) for row in rows] == 3 * [COLUMN_CONTRACT.split()]
    assert [(row["story_id"], row["similarity"]) for row in rows] == [(4, 1.0), (3, 0.5), (2, 0.1)]
    assert rows[1] == {
        "story_id": 3, "language": "HINDI", "title": "=कथा 3", "author_id": "a3",
        "published_at": "2026-11-20T12:00:00.003Z", "similarity": 0.5, "copied_words": 50, "words": 100, "sources": 2,
        "top_source_id": 1, "top_source_title": "=कथा 1", "top_source_author_id": "a1", "top_share": 0.4,
        "kinds": "partial", "path": "3.html",
        "publication_order": "1 was published less than a second before 3, by the listing", "updated_at": None,
        "known_since": format_time(NOON), "verdict": None, "moderator": None, "note": None, "decided_at": None,
        "undone_at": None, "undone_by": None,
            "top_source_catalogue": None, "top_source_licence": None, "hidden": False,
    }  # fmt: skip


def test_every_format_has_the_same_stories(db: sqlite3.Connection, tmp_path: Path) -> None:
    rows = exported(db, tmp_path / "jsonl")
    assert exported(db, tmp_path / "csv", "csv") == [
        {name: of_csv(value) for name, value in row.items()} for row in rows
    ]
    assert exported(db, tmp_path / "parquet", "parquet") == [
        row | {name: datetime.fromisoformat(row[name]) for name in ("published_at", "known_since")} for row in rows
    ]
    header, *sheet = exported(db, tmp_path / "stories.xlsx", "xlsx")
    assert header == list(STORIES.columns)
    assert sheet == [[str(value) if name in IDS else value for name, value in row.items()] for row in rows]
    articles = exported(db, tmp_path / "html", "html")
    named = [f"story {row['story_id']}" in article.text() for article, row in zip(articles, rows, strict=True)]
    assert all(named), "an article does not name its story"
    assert "50 % =कथा 3" in articles[1].text().replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("selection", "stories"),
    [
        (Selection(similarity=0.5), [4, 3]),
        (Selection(kinds=(NEAR,)), [4]),
        (Selection(story=2), [3, 2]),
        (Selection(author="a4"), [4]),
        (Selection(statuses=("plagiarism",)), []),
    ],
)
def test_stories_are_those_that_copy_by_a_selected_pair(
    db: sqlite3.Connection, tmp_path: Path, selection: Selection, stories: list[int]
) -> None:
    assert [row["story_id"] for row in exported(db, tmp_path / "stories", selection=selection)] == stories


def test_row_has_the_latest_verdict_on_the_story_also_if_undone(db: sqlite3.Connection, tmp_path: Path) -> None:
    def decision() -> tuple[Any, ...]:
        row = next(exported_row for exported_row in exported(db, tmp_path / "stories") if exported_row["story_id"] == 3)
        return tuple(row[name] for name in ("verdict", "moderator", "note", "undone_by"))

    done = decide_case(db, 3, Verdict.QUOTATION, "नोट")
    db.execute("UPDATE flags SET status = 'open' WHERE a = 1 AND b = 3")
    assert decision() == ("quotation", "Asha", "नोट", None)
    verdicts.undo(db, done, "Ravi", verdicts.identify_state(db, verdicts.list_flags(db, done)))
    assert decision() == ("quotation", "Asha", "नोट", "Ravi")


@pytest.mark.parametrize("form", FORMATS)
def test_export_without_stories_is_valid(tmp_path: Path, form: Format) -> None:
    with closing(ledger_in_memory()) as db:
        rows = exported(db, tmp_path / f"stories.{form}", form)
    assert rows == ([list(STORIES.columns)] if form == "xlsx" else [])


def test_page_escapes_titles_and_says_what_it_leaves_out(
    db: sqlite3.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.moderation.export.write.MAX_STORIES_SHOWN", 2)
    db.execute("UPDATE stories SET title = '<script>alert(1)</script>'")
    articles = exported(db, tmp_path / "html", "html")
    page = (tmp_path / "html").read_text(encoding="utf-8")
    assert len(articles) == 2 and "2 of 3 stories are shown" in page
    assert "<script>" not in page and "&lt;script&gt;alert(1)" in page


@pytest.fixture
def clustered() -> Iterator[sqlite3.Connection]:
    """Clusters {1, 2, 3}, {-1, 5} with a work, and {8, 9}; 10 shares a passage with 9.  Each is of another language."""
    with closing(ledger_in_memory()) as db:
        for n, published in ((1, 3), (2, 1), (3, 2), (-1, None), (5, 1), (8, 1), (9, 2), (10, 5)):
            catalogue = "books" if n < 0 else None
            language = LANGUAGES[0 if n in {1, 2, 3} else 1 if n in {-1, 5} else 2]
            at = None if published is None else NOON + published
            story = Story(n, language, f"{n}.html", title=f"कथा {n}", published_at=at, catalogue=catalogue)
            commit(db, Fingerprinted(story, fingerprint_of(abs(n).to_bytes(16)), None))
        db.execute("UPDATE stories SET words = 500 WHERE id = 3")
        for a, b in ((1, 2), (2, 3), (-1, 5), (8, 9)):
            flag_spans(db, a, b, NEAR, spans_of((0, 10)), spans_of((0, 10)))
        flag_spans(db, 9, 10, PASSAGE, spans_of((0, 10)), spans_of((0, 10)))
        yield db


def exported_members(
    db: sqlite3.Connection, file: Path, form: Format = "jsonl", keep: Policy = "earliest"
) -> list[tuple[int, bool]]:
    """The stories that are written, each with whether to keep it."""
    ids = write_members(db, file, ExportOptions(form, by="member", keep=keep), SHIPPED)
    match form:
        case "jsonl":
            rows = [(row["story_id"], row["keep"]) for row in read_jsonl(file)]
        case "csv":
            rows = [(int(row["story_id"]), row["keep"] == "true") for row in read_csv(file)]
        case "xlsx":
            at = [MEMBERS.columns.index(name) for name in ("story_id", "keep")]
            rows = [(int(row[at[0]].value), row[at[1]].value) for row in list(read_xlsx(file))[1:]]
        case "parquet":
            rows = [(row["story_id"], row["keep"]) for row in parquet.read_table(file).to_pylist()]
        case "html":
            items = LexborHTMLParser(file.read_text(encoding="utf-8")).css("article li")
            texts = [item.text() for item in items]
            rows = [(int(text.split("story ")[1].split(" ·")[0]), text.startswith("keep:")) for text in texts]
    assert ids == [story_id for story_id, _ in rows]
    return rows


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_keeps_one_story_of_each_cluster(
    policy: Policy, clustered: sqlite3.Connection, tmp_path: Path
) -> None:
    rows = exported_members(clustered, tmp_path / "members", keep=policy)
    assert {story_id for story_id, keep in rows if keep} == KEPT[policy]
    assert Counter(story_id for story_id, _ in rows) == dict.fromkeys((1, 2, 3, -1, 5, 8, 9), 1)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_same_members(form: Format, clustered: sqlite3.Connection, tmp_path: Path) -> None:
    assert exported_members(clustered, tmp_path / f"members.{form}", form) == exported_members(
        clustered, tmp_path / "rows"
    )


def test_a_selection_chooses_whole_clusters(clustered: sqlite3.Connection, tmp_path: Path) -> None:
    file, selection = tmp_path / "members", Selection(languages=(LANGUAGES[0],))
    assert set(write_members(clustered, file, ExportOptions("jsonl", selection, by="member"), SHIPPED)) == {1, 2, 3}
