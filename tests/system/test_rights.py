"""The commands of rights: `permit` enters, lists and revokes permissions, and an export follows them; `complaints`
records the rows of a CSV file and lists the open ones.  Each mistake is named in one line.
"""

import csv
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from neardup.ledger import connect, now_ms, transaction

from tests.support.command import Neardup, assert_one_line
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_corpus import prose, write
from tests.support.languages import HINDI

TEXT = prose(1, 200).split()


def test_permissions_by_command(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    neardup = make_neardup(write(tmp_path / "corpus", []))
    assert_one_line(neardup("permit", "--by", "asha"), 1, "no ledger")
    with closing(connect(neardup.ledger)) as db:
        source = [CopiedFrom(TEXT, [(0, 0, 200)], "asha")]
        write_copying_story(tmp_path / "corpus" / "pages", db, 1001, HINDI, TEXT, source, author="ravi")

    def exported(*options: str) -> int:
        return neardup("export", "--format", "jsonl", *options).out.count("\n")

    assert (
        neardup("permit", "--by", "asha", "--story", "1000", "--to", "ravi", "--licence", "CC BY", "--as", "A").code
        == 0
    )
    assert (exported(), exported("--status", "permitted")) == (0, 1)
    page = neardup("export", "--format", "html", "--status", "permitted").out
    assert "permitted by permission 1, <bdi>CC BY</bdi>" in page
    [listed] = neardup("permit", "--json").facts["permissions"]
    assert (listed["story_id"], listed["entered_by"], listed["state"]) == (1000, "A", "in_force")
    assert "CC BY" in neardup("permit").out
    for arguments, why in (
        (("--by", "ravi", "--story", "1000"), "is by author asha"),
        (("--by", "asha", "--story", "1000", "--serial", "7"), "only one of story_id, serial"),
        (("--by", "asha", "--until", "soon"), "until: 'soon' is not"),
        (("--by", "asha", "--revoke", "1"), "exclude each other"),
        (("none.csv",), "none.csv: No such file"),
        (("--revoke", "7"), "there is no permission 7"),
    ):
        ended = neardup("permit", *arguments)
        assert ended.code in (1, 2)
        assert_one_line(ended, ended.code, why)
    assert neardup("permit", "--revoke", "1").code == 0
    assert exported() == 1
    (neardup.folder / "permissions.csv").write_text("granted_by,granted_to,until\nasha,ravi,2999-01-01\n", "utf-8")
    assert neardup("permit", "permissions.csv").code == 0 and exported() == 0
    with closing(connect(neardup.ledger)) as db, transaction(db):
        db.execute("UPDATE permissions SET until = ?", (now_ms(),))  # as time passes
    assert exported() == 1, "an export does not see that a term has ended"
    assert neardup("permit").out.strip() == "No permissions."


HEAD = ["story_id", "original_id", "original_text", "complainant", "contact", "statement"]
COPY, ORIGINAL = "4104002", "4104000"


def write_rows(path: Path, *rows: list[str], head: list[str] = HEAD) -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def test_complaints_of_a_file_are_recorded_or_named(backfilled: Neardup, tmp_path: Path) -> None:
    person = ["Meera", "meera@example.com", "यह मेरी है,\nपूरी"]
    rows = [
        [COPY, ORIGINAL, "", *person],
        [COPY, ORIGINAL, "", *person],
        ["77", "", "", *person],
        [COPY, "", "", *person],
        [COPY, "", "दो शब्द", *person],
        [COPY, "", prose(2, 30_000), *person],
    ]
    ended = backfilled("complaints", "--add", str(write_rows(tmp_path / "a.csv", *rows)))
    assert ended.code == 1
    recorded = [line.partition(", due")[0] for line in ended.out.splitlines()]
    assert recorded == ["line 3: complaint 1", "line 9: complaint 2", "line 13: complaint 3"]
    for words in (
        "line 5: this is complaint 1",
        "line 7: the story is not on record",
        "line 11: the text of",
        "3 rows",
    ):
        assert words in ended.err, ended.err
    listed = backfilled("complaints", "--json")
    assert [complaint["evidence"]["compared_with"] for complaint in listed.rows] == ["story", "all", "text"]
    assert "meera" not in listed.out.lower()
    assert f"1  story {COPY}  due " in backfilled("complaints").out
    assert backfilled("complaints", "--closed").out == "No closed complaints.\n"
    for path, words in (
        (tmp_path / "absent.csv", "cannot read"),
        (write_rows(tmp_path / "b.csv", head=HEAD[1:]), "no column story_id"),
        (write_rows(tmp_path / "c.csv", head=[*HEAD, "colour"]), "unknown column colour"),
        (write_rows(tmp_path / "d.csv", [*["x"] * 7]), "more cells than columns"),
    ):
        assert_one_line(backfilled("complaints", "--add", str(path)), 2, "--add", words)
