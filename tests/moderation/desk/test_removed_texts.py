"""Law: a story that matches a text removed as plagiarism leads to the earlier account, wherever it is shown."""

import sqlite3
from contextlib import closing
from pathlib import Path

from neardup.ledger import cases, connect, now_ms, removed_texts, stories
from neardup.ledger.removed_texts import Returned
from neardup.moderation.desk.api_answers import read_case
from neardup.records import Verdict

from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import get, named_client
from tests.support.desk_corpus import prose
from tests.support.languages import HINDI
from tests.support.verdicts import give_verdict

TEXT = prose(1, 200).split()
HOSTILE = '"><script>alert(1)</script>'


def copy(folder: Path, db: sqlite3.Connection, story_id: int, author: str) -> None:
    """A story by an author that copies one by asha, whose id is one lower."""
    write_copying_story(folder, db, story_id, HINDI, TEXT, [CopiedFrom(TEXT, [(0, 0, 200)], "asha")], author=author)


async def test_the_new_account_is_shown_beside_the_earlier_one(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "neardup.db")) as db:
        removed_texts.keep_for(db, 30, now_ms())
        copy(tmp_path, db, 1001, HOSTILE)
        copy(tmp_path, db, 2001, "ravi2")
        give_verdict(db, [(1000, 1001)], Verdict.PLAGIARISM)
        stories.erase(db, [1001])
        [number] = db.execute("SELECT number FROM stories WHERE id = 2001").fetchone()
        removed_texts.record_checked(db, [Returned(number, 1001, "exact", 1.0)], number)
        cases.refresh(db)
        found = read_case(db, cases.find_case(db, 2001) or 0)
        assert found is not None and [match.removed_author for match in found.removed_texts] == [HOSTILE]
    async with named_client(tmp_path) as client:
        for path, shown in (
            ("/", "matches a removed text"),
            ("/case/2001", "a text that was removed from author"),
            ("/story/2001", "a text that was removed from author"),
            ("/author/ravi2", "Earlier accounts"),
            ("/author/%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E", "Later accounts"),
            ("/authors", "Accounts that may have come back"),
        ):
            status, page = await get(client, path)
            assert status == 200 and shown in page, path
            assert path == "/" or "/author/%22%3E%3Cscript" in page or "/author/ravi2" in page, path
            async with client.get(path) as answer:
                assert "<script>alert" not in await answer.text(), path
        assert "Earlier accounts" not in (await get(client, "/author/asha"))[1]
