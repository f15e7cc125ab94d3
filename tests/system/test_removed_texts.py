"""A run remembers what was removed as plagiarism, and knows the account that comes back with it, or a part of it."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from neardup.ledger import connect, removed_texts
from neardup.records import Verdict

from tests.support.command import Neardup, embedded
from tests.support.desk_client import get, named_client
from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.verdicts import decide_case

LANGUAGE = SAMPLED[0]
TEXT = " ".join(STORIES[LANGUAGE][:3])
PART = " ".join([STORIES[LANGUAGE][4], *TEXT.split()[150:300], STORIES[LANGUAGE][5]])
LISTED = {1: ("asha", 1), 2: ("ravi", 2), 3: ("ravi2", 3), 4: ("asha", 4), 5: ("ravi3", 5)}


async def test_an_account_that_comes_back_is_known(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    config = embedded(tmp_path / "manifest.csv", pages).replace('body = "article .story, div.post-body"', "")
    neardup = make_neardup(config)

    def run(*ids: int, empty: int | None = None) -> None:
        rows = ["id,language,path,author_id,published_at,updated_at"]
        for story_id in ids:
            author, day = LISTED[story_id]
            text = "" if story_id == empty else PART if story_id == 5 else TEXT
            (pages / f"{story_id}.html").write_text(f"<p>{text}</p>", encoding="utf-8")
            rows.append(f"{story_id},{LANGUAGE},{story_id}.html,{author},2026-01-0{day},2026-02-0{len(ids)}")
        (tmp_path / "manifest.csv").write_text("\n".join(rows), encoding="utf-8")
        ended = neardup("backfill")
        assert ended.code == 0, ended.err

    run(1, 2)
    with closing(connect(neardup.ledger)) as db:
        decide_case(db, 2, Verdict.PLAGIARISM)
    run(1, 2, 3, 4, empty=2)
    run(1, 2, 3, 4, 5, empty=2)
    with closing(connect(neardup.ledger)) as db:
        whole, part = removed_texts.read_of_stories(db, LISTED)
    assert [(row["story_id"], row["author"], row["removed_author"]) for row in (whole, part)] == [
        (3, "ravi2", "ravi"),
        (5, "ravi3", "ravi"),
    ]
    assert (whole["kind"], whole["similarity"], part["kind"]) == ("exact", 1.0, "passage")
    async with named_client(neardup.folder) as client:
        for story_id in (3, 5):
            assert "a text that was removed from author" in (await get(client, f"/story/{story_id}"))[1], story_id
    neardup.configure(f"{config}\n[detection]\nremember_removed_days = 0\n")
    run(1, 2, 3, 4, 5, empty=2)
    with closing(connect(neardup.ledger)) as db:
        assert not removed_texts.read_of_stories(db, LISTED), "it is remembered for longer than it is to be"
