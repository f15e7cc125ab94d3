"""The samples after a day of moderation: a verdict, an open case, a permission, a complaint and a removed text.

    python -m tests.support.moderated_samples FILE

writes their ledger and its passage index, compressed, as this version of the program makes them.  OLDEST_LEDGER was
made so at the last commit of the oldest schema that is supported.
"""

import shutil
import sqlite3
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from neardup.ledger import connect
from neardup.records import Verdict

from tests.support.command import Neardup, embedded, environment
from tests.support.paths import SAMPLES
from tests.support.verdicts import decide_case, put_complaint

JUDGED, REMOVED, PERMITTED = 4101004, 4100007, ("7010", "7045")
"""Copies: one with a verdict, one that was removed with a verdict, and who permitted whom to copy."""
OLDEST_LEDGER = Path(__file__).with_name("schema-19.tar.xz")
FOREVER_DAYS = 36_500  # a stored ledger is not to grow old
GONE = '<article><div class="story"><p>removed</p></div></article>'


def lay_out(neardup: Neardup, *, is_removed: bool = True) -> None:
    """Copy the samples into the folder, without the removed text, and configure the command for them."""
    shutil.copytree(SAMPLES / "stories", neardup.folder / "stories")
    shutil.copy(SAMPLES / "manifest.csv", neardup.folder)
    if is_removed:
        remove(neardup)
    neardup.configure(
        f"{embedded(Path('manifest.csv'), Path('stories'))}[detection]\nremember_removed_days = {FOREVER_DAYS}\n"
    )


def remove(neardup: Neardup) -> None:
    """Empty the page of the removed text, and list it as updated."""
    [page] = (neardup.folder / "stories").glob(f"*/{REMOVED}.html")
    page.write_text(GONE, encoding="utf-8")
    rows = (SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()
    rows = [f"{row.rpartition(',')[0]},2026-01-01" if row.startswith(f"{REMOVED},") else row for row in rows]
    (neardup.folder / "manifest.csv").write_text("\n".join(rows), encoding="utf-8")


def run(neardup: Neardup, *arguments: str) -> str:
    ended = neardup(*arguments)
    assert ended.code == 0, ended.err
    return ended.out


def moderate(neardup: Neardup) -> None:
    """Lay out the samples, make the ledger of their stories, and moderate them."""
    lay_out(neardup, is_removed=False)
    run(neardup, "backfill")
    run(neardup, "permit", "--by", PERMITTED[0], "--to", PERMITTED[1], "--as", "Ravi")
    with closing(connect(neardup.ledger)) as db:
        decide_case(db, JUDGED, Verdict.PLAGIARISM, "as seen")
        decide_case(db, REMOVED, Verdict.PLAGIARISM)
        put_complaint(db, 4103005, 4103000, FOREVER_DAYS)
    remove(neardup)
    run(neardup, "backfill")


def lay_out_oldest(neardup: Neardup) -> None:
    """Lay out the samples, with the ledger that the last program of the oldest schema made of them."""
    lay_out(neardup)
    with tarfile.open(OLDEST_LEDGER) as packed:
        packed.extractall(neardup.folder, filter="data")


def pack(ledger: Path, to: Path) -> None:
    with closing(sqlite3.connect(ledger)) as db:
        db.execute("VACUUM")
    with tarfile.open(to, "w:xz", preset=9) as packed:
        for path in sorted(ledger.parent.glob(f"{ledger.name}*")):
            if path.suffix in {".db", ".passages", ".heads"}:
                packed.add(path, path.name)


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        made_by = Neardup(Path(made), environment(), is_forked=False)
        moderate(made_by)
        pack(made_by.ledger, Path(sys.argv[1]))
