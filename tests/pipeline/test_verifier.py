"""Laws: candidates are verified by their texts, or by their signatures if a text is missing.

If the store does not answer for a text, its candidates are verified later.
"""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from neardup.config import Content, Detection
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.languages import LANGUAGES
from neardup.core.page import PageStory, extract_story, make_comparable
from neardup.core.text.extraction import Extraction
from neardup.core.text.normalize import tokenize
from neardup.core.verify.scores import ComparedPair, assess_all
from neardup.core.verify.text import Text
from neardup.errors import NeardupError
from neardup.ledger import Ledger, candidates, flags, passages, stories, verification
from neardup.ledger.passages import CommonPassage
from neardup.pages.results import ReadFailed, TextResult, make_failure
from neardup.pages.store import Pages
from neardup.pipeline import verifier
from neardup.pipeline.verifier import Verifier
from neardup.records import Candidate, Dead, Fingerprinted, Language, PairedStory, Story

from tests.support.builders import fetch_page, matches, texts_by
from tests.support.languages import BENGALI, HINDI, ODIA, TAMIL, TEXTS


class Store:
    """A store of files that counts reads; it does not answer for the stories in `unanswered`."""

    def __init__(self, folder: Path) -> None:
        self._pages = Pages(Content(url=f"file:{folder}"))
        self.folder = folder
        self.reads: Counter[int] = Counter()
        self.unanswered: set[int] = set()
        self.asked, self.answering = asyncio.Event(), asyncio.Event()
        self.answering.set()

    async def read_to_compare(self, story: Story) -> TextResult:
        self.reads[story.id] += 1
        self.asked.set()
        await self.answering.wait()
        if story.id in self.unanswered:
            return ReadFailed(Dead.STORE_ERROR, "no answer")
        try:
            page = fetch_page(self._pages, f"{story.language}/{story.id}.html")
        except NeardupError as error:
            return make_failure(error)
        assert page is not None
        found = extract_story(page, Extraction())
        return make_comparable(found.text) if isinstance(found, PageStory) else found

    def write(self, language: Language, story_id: int, words: list[str]) -> None:
        path = self.folder / language / f"{story_id}.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"<body><p>{' '.join(words)}</p></body>", encoding="utf-8")


class Scene:
    """A ledger, a store, and a verifier of the ledger's candidates."""

    def __init__(self, folder: Path) -> None:
        (folder / "pages").mkdir()
        self.ledger = Ledger(folder / "ledger.db")
        self.store = Store(folder / "pages")
        texts = texts_by(self.store.read_to_compare)
        self.verifier = Verifier(self.ledger, Detection(), "v", texts, lambda new_flags, pairs: None)

    async def add(self, language: Language, *listed: tuple[int, list[str]]) -> None:
        """Write pages and commit their stories, each nominated with all the others."""
        made = []
        for story_id, words in listed:
            self.store.write(language, story_id, words)
            made.append(Fingerprinted(Story(story_id, language), fingerprint(tokenize(" ".join(words))), None))
        pairs = {(a, b) for a, _ in listed for b, _ in listed if a < b}
        await self.ledger.do(stories.commit, stories.Batch(Outcomes.of(made), matches(pairs), 1, {}, None))

    async def flags(self) -> list[tuple[int, int, str, bool]]:
        rows = await self.ledger.do(lambda db: list(flags.select(db)))
        return [(row["matched_id"], row["story_id"], row["kind"], bool(row["estimated"])) for row in rows]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.ledger.close()


def words_of(language: Language, name: str, n: int = 200) -> list[str]:
    words = [word.decode() for word in tokenize(TEXTS[language])]
    return [f"{words[k % len(words)]}{name}{k}" for k in range(n)]


@pytest.mark.parametrize("language", LANGUAGES)
async def test_each_kind_of_copy_is_found_in_the_texts(scene: Scene, language: Language) -> None:
    story = words_of(language, "a")
    await scene.add(
        language,
        (1, story),
        (2, story[:1] + story[1:]),
        (3, story[:150] + words_of(language, "b", 50)),
        (4, words_of(language, "c", 120) + story[60:] + words_of(language, "d", 100)),
        (5, words_of(language, "e")),
    )
    await scene.verifier.drain()
    found = {(a, b): kind for a, b, kind, estimated in await scene.flags() if not estimated}
    assert found[1, 2] == "exact"
    assert found[1, 3] == found[2, 3] == "similar"
    assert found[1, 4] == found[2, 4] == "partial"
    assert not any(5 in pair for pair in found)
    assert max(scene.store.reads.values()) == 1, "a text shared by several pairs was read more than once"


async def test_texts_too_large_together_are_verified_pair_by_pair(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    put = verification.put_verified

    def counted(db: sqlite3.Connection, pairs: Sequence[Any], version: str) -> Any:
        sizes.append(len(pairs))
        return put(db, pairs, version)

    monkeypatch.setattr(verifier, "MAX_TEXT_BYTES", 1)
    monkeypatch.setattr("neardup.ledger.verification.put_verified", counted)
    language, story = TAMIL, words_of(TAMIL, "a")
    await scene.add(language, *((n, [*story[:-n], *words_of(language, f"b{n}", n)]) for n in range(1, 5)))
    await scene.verifier.drain()
    assert sizes == [1] * 6, "four stories have six pairs, each verified alone"
    assert len(await scene.flags()) == 6


async def test_a_missing_or_changed_text_is_estimated_by_its_signature(scene: Scene) -> None:
    language = ODIA
    story = words_of(language, "a")
    await scene.add(language, (1, story), (2, story[:160] + words_of(language, "b", 40)), (3, story[:150]))
    (scene.store.folder / language / "2.html").unlink()
    scene.store.write(language, 3, words_of(language, "other"))
    await scene.verifier.drain()
    assert {(a, b): estimated for a, b, _, estimated in await scene.flags()} == {
        (1, 2): True,
        (1, 3): True,
        (2, 3): True,
    }


async def test_a_pair_stays_pending_until_the_store_answers(scene: Scene) -> None:
    language = TAMIL
    story = words_of(language, "a")
    await scene.add(language, (1, story), (2, story[:180]), (3, story[:170]))
    scene.store.unanswered = {2}
    await scene.verifier.drain()
    assert [(a, b) for a, b, *_ in await scene.flags()] == [(1, 3)]
    assert await scene.ledger.do(candidates.count_pending) == 2
    reads = scene.store.reads[2]
    await scene.verifier.drain()
    assert scene.store.reads[2] == reads, "an unanswered text was read again in the same run"
    scene.store.unanswered = set()
    scene.verifier.finish()
    await scene.verifier.run()
    assert {(a, b) for a, b, *_ in await scene.flags()} == {(1, 2), (1, 3), (2, 3)}
    assert await scene.ledger.do(candidates.count_pending) == 0


async def test_any_story_with_the_text_can_provide_it(scene: Scene) -> None:
    language = BENGALI
    story = words_of(language, "a")
    await scene.add(language, (1, story[:150]), (2, story), (3, story), (4, story))
    (scene.store.folder / language / "4.html").unlink()
    scene.store.unanswered = {2}
    await scene.verifier.drain()
    assert {(a, b): estimated for a, b, kind, estimated in await scene.flags() if kind == "similar"} == {
        (1, n): False for n in (2, 3, 4)
    }


async def test_candidates_committed_behind_a_pass_are_verified_before_the_end(scene: Scene) -> None:
    language = HINDI
    story = words_of(language, "a")
    await scene.add(language, (7, story), (8, story[:190]))
    scene.store.answering.clear()
    running = asyncio.create_task(scene.verifier.run())
    scene.verifier.wake()
    await scene.store.asked.wait()
    await scene.add(language, (1, story), (2, story[:180]))
    scene.verifier.wake()
    scene.verifier.finish()
    scene.store.answering.set()
    await running
    assert {(a, b) for a, b, *_ in await scene.flags()} == {(1, 2), (7, 8)}
    assert await scene.ledger.do(candidates.count_pending) == 0


async def test_a_pass_is_made_only_when_the_verifier_is_woken(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Counter[str]()

    async def count() -> None:
        passes["made"] += 1
        await asyncio.sleep(0)

    monkeypatch.setattr(scene.verifier, "drain", count)
    running = asyncio.create_task(scene.verifier.run())
    for woken in range(3):
        for _ in range(9):
            await asyncio.sleep(0)
        assert passes["made"] == woken
        scene.verifier.wake()
    scene.verifier.finish()
    await running
    assert passes["made"] == 3, "the last wake and the end are one pass"


async def test_a_passage_that_becomes_common_during_a_verification_counts_in_the_end(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    language, shared = HINDI, words_of(HINDI, "p", 120)
    texts = {story_id: words_of(language, f"x{story_id}", 400) + shared for story_id in (1, 2)}
    hashes = [np.frombuffer(fingerprint(tokenize(" ".join(words))).passages, np.uint32) for words in texts.values()]
    common = [CommonPassage(language, hash_, 51, None, 1) for hash_ in np.intersect1d(hashes[0], hashes[1]).tolist()]
    loop, kinds = asyncio.get_running_loop(), list[str | None]()

    def record_common_meanwhile(*arguments: Any) -> Any:
        assessed = assess_all(*arguments)
        kinds.extend(found.kind if found else None for found in assessed)
        if len(kinds) == 1:
            asyncio.run_coroutine_threadsafe(scene.ledger.do(passages.record_common, common), loop).result()
        return assessed

    monkeypatch.setattr(verifier, "assess_all", record_common_meanwhile)
    await scene.add(language, *texts.items())
    for _ in range(2):
        await scene.verifier.drain()
    assert kinds == ["passage", None], "a flag that rests on a common passage was not verified again"
    assert await scene.flags() == []


async def test_a_passage_that_becomes_common_while_texts_are_read_has_no_pair_verified_twice(scene: Scene) -> None:
    language = HINDI
    await scene.add(language, (1, words_of(language, "a")), (2, words_of(language, "b")))
    scene.store.answering.clear()
    draining = asyncio.create_task(scene.verifier.drain())
    await scene.store.asked.wait()
    await scene.ledger.do(passages.record_common, [CommonPassage(language, 1, 51, None, 1)])
    scene.store.answering.set()
    await draining
    assert await scene.ledger.do(candidates.count_pending) == 0, "the texts were not compared apart from the passage"


def test_a_pair_that_nothing_nominates_any_more_is_no_match() -> None:
    """A passage that ceases to be common nominates all its holders, of which two may share no other one."""
    shared = words_of(HINDI, "p", 120)
    texts = [Text(" ".join((*words_of(HINDI, name, 400), *shared))) for name in "ab"]
    sides = (
        PairedStory(n, HINDI, None, text.text_hash, text.fingerprint.simhash, None, len(text.word_hashes), 500)
        for n, text in enumerate(texts)
    )
    compared, common = [ComparedPair(Candidate(*sides), *texts)], {HINDI: np.empty(0, np.uint32)}
    [found] = verifier.assess_nominated(compared, Detection(), common)
    assert found is not None and found.kind == "passage"
    texts[1].passages = np.intersect1d(texts[0].passages, texts[1].passages)[:1]
    assert verifier.assess_nominated(compared, Detection(), common) == [None], "one passage hash nominates nothing"
