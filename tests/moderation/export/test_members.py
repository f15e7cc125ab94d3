"""Laws: an export of the members of clusters has each member once, and in each cluster one to keep, in every format."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.verify.clusters import POLICIES, Policy
from neardup.core.verify.tiers import NEAR, PASSAGE
from neardup.ledger.flags import Selection
from neardup.moderation.export.tables import MEMBERS
from neardup.moderation.export.write import ExportOptions, write_members
from neardup.option_values import FORMATS, Format
from neardup.records import Fingerprinted, Story
from pyarrow import parquet  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser

from tests.support.builders import commit, fingerprint_of, ledger_in_memory
from tests.support.copied_spans import flag_spans, spans_of
from tests.support.exported_pairs import read_csv, read_jsonl, read_xlsx

NOON = 1_795_176_000_000
KEPT = {"earliest": {2, -1, 8}, "newest": {1, 5, 9}, "longest": {3, -1, 8}, "reference": {2, -1, 8}}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
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


def exported(
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
def test_each_policy_keeps_one_story_of_each_cluster(policy: Policy, db: sqlite3.Connection, tmp_path: Path) -> None:
    rows = exported(db, tmp_path / "members", keep=policy)
    assert {story_id for story_id, keep in rows if keep} == KEPT[policy]
    assert Counter(story_id for story_id, _ in rows) == dict.fromkeys((1, 2, 3, -1, 5, 8, 9), 1)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_the_same_members(form: Format, db: sqlite3.Connection, tmp_path: Path) -> None:
    assert exported(db, tmp_path / f"members.{form}", form) == exported(db, tmp_path / "rows")


def test_a_selection_chooses_whole_clusters(db: sqlite3.Connection, tmp_path: Path) -> None:
    file, selection = tmp_path / "members", Selection(languages=(LANGUAGES[0],))
    assert set(write_members(db, file, ExportOptions("jsonl", selection, by="member"), SHIPPED)) == {1, 2, 3}
