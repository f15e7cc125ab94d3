"""`neardup embed` finds what was translated or retold, and nothing else; a run that ends anywhere finds the same."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from msgspec.structs import replace
from neardup.app import open_readers
from neardup.config import Config, Meaning, load
from neardup.core.verify.tiers import TRANSLATED
from neardup.errors import Misuse
from neardup.insights.meaning import evaluate_meaning, make_meaning_tables
from neardup.ledger import connect, files, meaning_flags, read
from neardup.meaning import search
from neardup.meaning.embedding import EmbeddingSummary, embed

from tests.support.command import Neardup, assert_one_line
from tests.support.embeddings_server import embeddings_server
from tests.support.parallel_stories import (
    ORIGINAL,
    RETELLING,
    TRANSLATION,
    UNRELATED,
    embeddings_of_concepts,
    write_stories,
)

WANTED = {
    (ORIGINAL, TRANSLATION, "translated"),
    (ORIGINAL, RETELLING, "retold"),
    (TRANSLATION, RETELLING, "translated"),
}


def found(neardup: Neardup) -> set[tuple[int, int, str]]:
    with closing(read(neardup.ledger)) as db:
        return {(row["a"], row["b"], row["kind"]) for row in meaning_flags.select(db)}


@pytest.fixture
def stories(make_neardup: Callable[[str], Neardup]) -> Neardup:
    neardup = make_neardup("")
    neardup.configure(write_stories(neardup.folder))
    assert neardup("backfill").code == 0
    return neardup


async def run(neardup: Neardup) -> EmbeddingSummary:
    async with embeddings_server(*[embeddings_of_concepts] * 1_000) as (url, _):
        loaded: Config = load(neardup.folder / "config.toml")
        config = replace(loaded, meaning=Meaning(kind="url", url=url, model="concepts"))
        return await embed(config, open_readers, asyncio.Event(), since=0)


async def test_translated_and_retold_stories_are_found(stories: Neardup, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(search, "put_searched", fails)
        with pytest.raises(RuntimeError):
            await run(stories)
    assert found(stories) == WANTED, "the pairs are on record before their stories count as searched for"
    monkeypatch.setattr(search, "BATCH_STORIES", 7)
    done = await run(stories)
    assert (done.embedded, done.search.searched) == (0, len(UNRELATED) + 3)
    assert (sum(done.search.found.values()), done.search.copies) == (0, 0)
    assert found(stories) == WANTED
    assert (await run(stories)).search.searched == 0
    assert not stories.flagged_pairs(), "no flag is among them"


async def test_a_copy_by_its_words_is_not_called_retold(stories: Neardup) -> None:
    """Also where nothing nominated the pair: its texts decide."""
    first, second = (stories.folder / "pages" / "HINDI" / f"{n}.html" for n in (ORIGINAL, RETELLING))
    words = first.read_text(encoding="utf-8").split()
    second.write_text(" ".join([*words[:5], *words[6:]]), encoding="utf-8")
    assert stories("backfill", "--refingerprint").code == 0
    with closing(connect(stories.ledger)) as db:
        db.execute("DELETE FROM flags")
    done = await run(stories)
    assert done.search.copies == 1
    assert (ORIGINAL, RETELLING, "retold") not in found(stories)


async def test_they_are_exported_when_asked_for_and_never_with_others(stories: Neardup) -> None:
    await run(stories)
    done = stories("export", "--kind", "translated", "--kind", "retold", "--format", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert {(*sorted((row["story_id"], row["matched_id"])), row["kind"]) for row in rows} == WANTED
    assert [row["margin"] for row in rows] == sorted((row["margin"] for row in rows), reverse=True)
    assert stories("export", "--kind", "retold", "--new").out.count("\n") == 1, "the header alone"
    assert_one_line(stories("export", "--kind", "retold", "--kind", "exact"), 2, "together")
    assert_one_line(stories("export", "--kind", "retold", "--by", "story"), 2, "table of pairs")
    assert_one_line(stories("export", "--kind", "retold", "--min-similarity", "0.5"), 2, "--min-similarity")


async def test_the_thresholds_are_fitted_to_the_stories_that_were_searched_for(
    stories: Neardup, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(stories)
    async with embeddings_server(*[embeddings_of_concepts] * 1_000) as (url, _):
        by_url = Meaning(kind="url", url=url, model="concepts", false_alarms=0.01)
        config = replace(load(stories.folder / "config.toml"), meaning=by_url)
        with pytest.raises(Misuse, match="a fit needs 500"):
            await evaluate_meaning(config)
        monkeypatch.setattr("neardup.insights.meaning.LEAST_STORIES", 30)
        facts = await evaluate_meaning(config)
    assert [sample["kind"] for sample in facts["samples"]] == ["translated"] * 3 + ["retold"] * 2
    for row in facts["kinds"]:
        assert row["fitted"] == (row["stories"] >= 30), row
        assert row["threshold"] > row["location"]
    assert any("the thresholds would find" in table.note for table in make_meaning_tables(facts))
    assert found(stories) == WANTED, "the copies stand out from the others"
    assert (await run(stories)).search.searched == facts["searched_again"] == len(WANTED)
    assert found(stories) == WANTED


async def test_a_kind_that_few_stories_have_pairs_of_keeps_its_threshold(
    stories: Neardup, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run(stories)
    monkeypatch.setattr("neardup.insights.meaning.LEAST_STORIES", 30)
    with closing(sqlite3.connect(files.name_vectors_file(stories.ledger))) as db, db:
        db.execute("UPDATE codes SET translated = NULL WHERE story_id % 2")
    async with embeddings_server(*[embeddings_of_concepts] * 1_000) as (url, _):
        by_url = Meaning(kind="url", url=url, model="concepts")
        config = replace(load(stories.folder / "config.toml"), meaning=by_url)
        facts = await evaluate_meaning(config)
    translated, retold = facts["kinds"]
    assert (translated["kind"], translated["fitted"], retold["fitted"]) == (TRANSLATED, False, True)
    assert translated["threshold"] == translated["threshold_before"]
    assert retold["threshold"] != retold["threshold_before"]
