"""Over HTTP, a story that matches a text that was removed as plagiarism says so until that is forgotten on request."""

from contextlib import closing
from pathlib import Path

import neardup
from neardup.ledger import connect, now_ms, removed_texts, stories
from neardup.records import Verdict

from tests.support.http_service import configuration, http_service
from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES
from tests.support.verdicts import decide_case

LANGUAGE = SAMPLED[0]
TEXT = STORIES[LANGUAGE][0]


async def test_a_story_names_the_removed_text_that_it_matches(tmp_path: Path) -> None:
    config = configuration(tmp_path, deadline_seconds=30)
    async with http_service(config) as (client, _), neardup.AsyncClient(str(client.make_url(""))) as caller:
        for n, author in enumerate(["asha", "ravi", "ravi2"], 1):
            await caller.put(n, language=LANGUAGE, text=TEXT, author_id=author, published_at=f"2026-01-0{n}")
        with closing(connect(tmp_path / "neardup.db")) as db:
            removed_texts.keep_for(db, 30, now_ms())
            decide_case(db, 2, Verdict.PLAGIARISM)
            stories.erase(db, [2])  # as a run does whose listing lacks it
        [match] = (await caller.story(3)).removed_matches
        assert (match.author_id, match.kind, match.similarity) == ("ravi", "exact", 1.0)
        assert not (await caller.story(1)).removed_matches, "the story that was copied"
        await caller.forget(1)
        assert not (await caller.story(3)).removed_matches
