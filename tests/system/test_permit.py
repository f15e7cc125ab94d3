"""The command `permit` enters, lists and revokes permissions, and an export follows them; each mistake is one line."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from neardup.core.fingerprint.version import version
from neardup.ledger import connect, now_ms, runs, transaction

from tests.support.command import Neardup, assert_one_line
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_corpus import prose, write
from tests.support.languages import HINDI

TEXT = prose(1, 200).split()


def test_permissions_by_command(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    neardup = make_neardup(write(tmp_path / "corpus", []))
    assert_one_line(neardup("permit", "--by", "asha"), 1, "no ledger")
    with closing(connect(neardup.ledger)) as db:
        runs.put(db, "fingerprint_version", version())
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
