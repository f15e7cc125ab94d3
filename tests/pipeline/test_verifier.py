"""A candidate is judged by the texts; by its signatures where a text is gone; later, where the store is silent."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from neardup.config import Content, Detection
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.fingerprint.version import TEXTS
from neardup.core.page import shingle_story, text_of
from neardup.core.text.html import Extraction
from neardup.core.text.normalize import tokens
from neardup.errors import NeardupError
from neardup.ledger import Ledger, candidates, flags, stories
from neardup.pages.results import ReadFailed, ShingledResult, failure_of
from neardup.pages.store import Pages
from neardup.pages.text_cache import Texts
from neardup.pipeline import verifier
from neardup.pipeline.verifier import Verifier
from neardup.records import Dead, Fingerprinted, Language, Story

from tests.support.builders import fetch_page, matches


class Store:
    """Files, counted; some do not answer."""

    def __init__(self, folder: Path) -> None:
        self._pages = Pages(Content(url=f"file:{folder}"))
        self.folder = folder
        self.reads: Counter[int] = Counter()
        self.silent: set[int] = set()
        self.asked, self.answering = asyncio.Event(), asyncio.Event()
        self.answering.set()

    async def shingled(self, story: Story) -> ShingledResult:
        self.reads[story.id] += 1
        self.asked.set()
        await self.answering.wait()
        if story.id in self.silent:
            return ReadFailed(Dead.STORE_ERROR, "no answer")
        try:
            page = fetch_page(self._pages, f"{story.language}/{story.id}.html")
        except NeardupError as error:
            return failure_of(error)
        assert page is not None
        text = text_of(page, Extraction())
        return shingle_story(text) if isinstance(text, str) else text

    def write(self, language: Language, story_id: int, words: list[str]) -> None:
        path = self.folder / language / f"{story_id}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"<body><p>{' '.join(words)}</p></body>", encoding="utf-8")


class Desk:
    """A ledger, a store and a verifier between them."""

    def __init__(self, folder: Path) -> None:
        (folder / "pages").mkdir()
        self.ledger = Ledger(folder / "ledger.db")
        self.store = Store(folder / "pages")
        texts = Texts(self.store.shingled)
        self.verifier = Verifier(self.ledger, Detection(), "v", texts, lambda news: None)

    async def add(self, language: Language, *listed: tuple[int, list[str]]) -> None:
        """Write pages and commit their stories, each nominated with all the others."""
        made = []
        for story_id, words in listed:
            self.store.write(language, story_id, words)
            made.append(
                Fingerprinted(Story(story_id, language), fingerprint(tokens(" ".join(words))), None),
            )
        pairs = {(a, b) for a, _ in listed for b, _ in listed if a < b}
        await self.ledger.do(stories.commit, stories.Batch(made, matches(pairs), 1, {}, None))

    async def flags(self) -> list[tuple[int, int, str, bool]]:
        rows = await self.ledger.do(lambda db: list(flags.select(db)))
        return [(row["matched_id"], row["story_id"], row["kind"], bool(row["estimated"])) for row in rows]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.ledger.close()


def told(language: Language, name: str, n: int = 200) -> list[str]:
    words = [word.decode() for word in tokens(TEXTS[language])]
    return [f"{words[k % len(words)]}{name}{k}" for k in range(n)]


@pytest.mark.parametrize("language", Language)
async def test_each_kind_is_found_on_the_texts(desk: Desk, language: Language) -> None:
    story = told(language, "a")
    await desk.add(
        language,
        (1, story),
        (2, story[:1] + story[1:]),
        (3, story[:150] + told(language, "b", 50)),
        (4, told(language, "c", 120) + story[60:] + told(language, "d", 100)),
        (5, told(language, "e")),
    )
    await desk.verifier.drain()
    found = {(a, b): kind for a, b, kind, estimated in await desk.flags() if not estimated}
    assert found[1, 2] == "exact"
    assert found[1, 3] == found[2, 3] == "similar"
    assert found[1, 4] == found[2, 4] == "partial"
    assert not any(5 in pair for pair in found)
    assert max(desk.store.reads.values()) == 1, "many stories share a match: it is read once"


async def test_texts_that_are_too_large_together_are_judged_one_pair_after_the_other(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []
    decide = flags.decide

    def counted(db: sqlite3.Connection, pairs: Sequence[Any], version: str) -> Any:
        judged.append(len(pairs))
        return decide(db, pairs, version)

    monkeypatch.setattr(verifier, "HELD_BYTES", 1)
    monkeypatch.setattr(flags, "decide", counted)
    language, story = Language.TAMIL, told(Language.TAMIL, "a")
    await desk.add(language, *((n, [*story[:-n], *told(language, f"b{n}", n)]) for n in range(1, 5)))
    await desk.verifier.drain()
    assert judged == [1] * 6, "pairs of four stories"
    assert len(await desk.flags()) == 6


async def test_a_text_that_is_gone_or_has_changed_is_judged_by_its_signature_and_the_flag_says_so(desk: Desk) -> None:
    language = Language.ODIA
    story = told(language, "a")
    await desk.add(language, (1, story), (2, story[:160] + told(language, "b", 40)), (3, story[:150]))
    (desk.store.folder / language / "2.html").unlink()
    desk.store.write(language, 3, told(language, "other"))
    await desk.verifier.drain()
    assert {(a, b): estimated for a, b, _, estimated in await desk.flags()} == {
        (1, 2): True,
        (1, 3): True,
        (2, 3): True,
    }


async def test_what_the_store_does_not_give_stays_pending_and_is_judged_when_it_does(desk: Desk) -> None:
    language = Language.TAMIL
    story = told(language, "a")
    await desk.add(language, (1, story), (2, story[:180]), (3, story[:170]))
    desk.store.silent = {2}
    await desk.verifier.drain()
    assert [(a, b) for a, b, *_ in await desk.flags()] == [(1, 3)]
    assert await desk.ledger.do(candidates.pending_count) == 2
    reads = desk.store.reads[2]
    await desk.verifier.drain()
    assert desk.store.reads[2] == reads, "not again in every pass of a run"
    desk.store.silent = set()
    desk.verifier.finish()
    await desk.verifier.run()
    assert {(a, b) for a, b, *_ in await desk.flags()} == {(1, 2), (1, 3), (2, 3)}
    assert await desk.ledger.do(candidates.pending_count) == 0


async def test_of_stories_that_share_a_text_any_will_do(desk: Desk) -> None:
    language = Language.BENGALI
    story = told(language, "a")
    await desk.add(language, (1, story[:150]), (2, story), (3, story), (4, story))
    (desk.store.folder / language / "4.html").unlink()
    desk.store.silent = {2}
    await desk.verifier.drain()
    assert {(a, b): estimated for a, b, kind, estimated in await desk.flags() if kind == "similar"} == {
        (1, n): False for n in (2, 3, 4)
    }


async def test_what_is_committed_behind_a_pass_under_way_is_judged_before_the_end(desk: Desk) -> None:
    language = Language.HINDI
    story = told(language, "a")
    await desk.add(language, (7, story), (8, story[:190]))
    desk.store.answering.clear()
    judging = asyncio.create_task(desk.verifier.run())
    desk.verifier.wake()
    await desk.store.asked.wait()
    await desk.add(language, (1, story), (2, story[:180]))
    desk.verifier.wake()
    desk.verifier.finish()
    desk.store.answering.set()
    await judging
    assert {(a, b) for a, b, *_ in await desk.flags()} == {(1, 2), (7, 8)}
    assert await desk.ledger.do(candidates.pending_count) == 0
