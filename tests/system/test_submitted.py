"""Law: a check says what a run flags, and stories submitted one by one are flagged as a run flags them."""

import asyncio
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

from neardup.app import make_extraction, open_service_parts
from neardup.config import Config, load
from neardup.core.page import Page, PageStory, extract_story, prepare
from neardup.core.verify.text import Text
from neardup.ledger import files, read, similarities
from neardup.ledger.similarities import unpack_spans
from neardup.query.check import CheckResult, Submission
from neardup.records import Language
from neardup.source.parse import parse_time

from tests.support.command import Neardup, embedded
from tests.support.paths import SAMPLES
from tests.support.samples import ROWS

FLAGS = "SELECT a, b, kind, jaccard, containment_a, containment_b, longest_run_words, spans_a, spans_b FROM flags"
Flag = tuple[object, ...]


def flags(neardup: Neardup) -> list[Any]:
    with closing(sqlite3.connect(neardup.ledger)) as db:
        return db.execute(f"{FLAGS} WHERE status = 'open' AND NOT same_author ORDER BY a, b").fetchall()


def flags_of(rows: list[Any], story_id: int) -> dict[int, Flag]:
    """The flags of a story by the other story's id, seen from the story's side, with the spans of the story."""
    found: dict[int, Flag] = {}
    for a, b, kind, jaccard, in_a, in_b, run, spans_a, spans_b in rows:
        if story_id == a:
            found[b] = kind, jaccard, in_a, in_b, run, unpack_spans(spans_a).tolist(), unpack_spans(spans_b).tolist()
        elif story_id == b:
            found[a] = kind, jaccard, in_b, in_a, run, unpack_spans(spans_b).tolist(), unpack_spans(spans_a).tolist()
    return found


def matches_of(result: CheckResult) -> dict[int, Flag]:
    return {
        int(match.story_id): (
            match.kind,
            match.jaccard,
            match.containment,
            match.matched_containment,
            match.longest_run_words,
            sorted([start, end] for start, end, *_ in match.spans),
            sorted([start, end] for *_, start, end in match.spans),
        )
        for match in result.matches
    }


def submissions(config: Config) -> list[tuple[Submission, bytes]]:
    """The samples, in an order of their own."""
    made = []
    for row in random.Random(1).sample(ROWS, len(ROWS)):
        page = (SAMPLES / "stories" / row["language"] / f"{row['id']}.html").read_bytes()
        story = extract_story(Page(page), make_extraction(config))
        assert isinstance(story, PageStory)
        text = prepare(story.text)
        assert isinstance(text, Text)
        published_at = parse_time(row["published_at"]) if row["published_at"] else None
        author, title = row["author_id"] or None, row["title"] or None
        made.append(
            (Submission(Language(row["language"]), text, int(row["id"]), None, author, title, published_at), page)
        )
    return made


def test_checks_submissions_and_runs_agree(make_neardup: Callable[..., Neardup]) -> None:
    listed, submitted = make_neardup(embedded()), make_neardup(embedded(), "submitted")
    assert listed("backfill").code == 0
    expected = flags(listed)

    async def check_all() -> None:
        config = load(listed.folder / "config.toml")
        async with open_service_parts(config) as parts:
            with closing(read(listed.ledger)) as db:
                for story, _ in submissions(config):
                    assert story.story_id is not None
                    result = await parts.submissions.checker.check(story)
                    assert matches_of(result) == flags_of(expected, story.story_id), f"story {story.story_id}"
                    held = similarities.read_similarity(db, story.story_id)
                    assert held is not None and result.similarity == held.similarity
                    assert (result.verdict == "clear") == (not result.matches) and not result.estimated

    async def submit_all() -> None:
        config = load(submitted.folder / "config.toml")
        async with open_service_parts(config) as parts, asyncio.TaskGroup() as group:
            for story, page in submissions(config):
                group.create_task(parts.submissions.put(story, page))

    asyncio.run(check_all())
    asyncio.run(submit_all())
    assert flags(submitted) == expected
    assert len(list(files.name_submitted_folder(submitted.ledger).iterdir())) == len(ROWS)
    done = submitted("backfill", "--json").facts
    assert (done["fingerprinted"], done["skipped"], done["flagged"]) == (0, {"unchanged": len(ROWS)}, {})
    assert flags(submitted) == expected
    with closing(sqlite3.connect(submitted.ledger)) as db:
        assert db.execute("SELECT count(*) FROM stories WHERE path LIKE 'submitted:%'").fetchone() == (0,)
