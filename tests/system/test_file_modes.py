"""Whatever the umask, the files of ledger, exports, backups and pages are closed to others."""

import os
from contextlib import closing
from pathlib import Path

import pytest
from neardup.ledger import connect

from tests.support.command import Neardup


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_files_have_mode_0640(neardup: Neardup, tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        for command in (
            ("backfill", "--json"),
            ("backup", str(tmp_path / "copy.db")),
            *(("export", "-o", str(tmp_path / f"flags.{ending}")) for ending in ("csv", "jsonl", "xlsx", "html")),
            ("compare", "4104002", "4104005", "--html", str(tmp_path / "pair.html")),
        ):
            done = neardup(*command)
            assert done.code == 0, done.err
    finally:
        os.umask(before)
    written = [*tmp_path.glob("*.*"), *neardup.folder.glob("neardup.db*")]
    assert {"neardup.db", "copy.db", "flags.html", "pair.html"} <= {path.name for path in written}
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in written if path.is_file()} == {
        path.name: "0o640" for path in written if path.is_file() and path.name != "config.toml"
    }


def test_log_of_an_open_ledger_has_its_mode(neardup: Neardup) -> None:
    with closing(connect(neardup.ledger)):
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in neardup.folder.glob("neardup.db*")}
    assert modes == {f"neardup.db{ending}": "0o640" for ending in ("", "-wal", "-shm")}
