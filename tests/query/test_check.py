"""Laws of the checker: it finds what a run would flag, reads no page without need, and caches the texts it reads."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import stamina
from neardup.config import Detection
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.page import PageText, shingle_story, split_story
from neardup.core.text.normalize import tokens
from neardup.core.verify.tiers import EXACT, SIMILAR
from neardup.errors import Transient
from neardup.index.passages.index import PassageIndex
from neardup.index.sqlite import SqliteIndex
from neardup.languages import LANGUAGES
from neardup.ledger import Ledger, stories
from neardup.pages.results import ReadFailed, ShingledResult
from neardup.pages.text_cache import Texts
from neardup.pipeline.index_sync import catch_up, refuse_mismatch
from neardup.pipeline.passage_sync import open_passages
from neardup.query.check import CHECKED_ID, Checker
from neardup.records import Dead, Fingerprinted, Language, Story

from tests.support.languages import HINDI, ODIA, TAMIL, TEXTS

ORIGINAL = 7
VERSION = fingerprint_version.version()


def words_of(language: Language, name: str, n: int = 200) -> list[str]:
    words = [word.decode() for word in tokens(TEXTS[language])]
    return [f"{words[k % len(words)]}{name}{k}" for k in range(n)]


def story(words: list[str]) -> PageText:
    result = split_story(" ".join(words))
    assert isinstance(result, PageText)
    return result


class Platform:
    """A ledger, its index, and the texts of its stories; it counts the reads of each."""

    def __init__(self, ledger: Ledger, passages: PassageIndex) -> None:
        self.ledger = ledger
        self.index = SqliteIndex(ledger.path, Detection().bandings(LANGUAGES))
        self.texts: dict[int, str] = {}
        self.reads: Counter[int] = Counter()
        self.is_available = True
        self.checker = Checker(self.index, passages, self.ledger, Texts(self._shingled), Detection(), VERSION)

    async def _shingled(self, story: Story) -> ShingledResult:
        self.reads[story.id] += 1
        if not self.is_available:
            return ReadFailed(Dead.STORE_ERROR, "no answer")
        return shingle_story(self.texts[story.id])

    async def add(self, language: Language, story_id: int, words: list[str]) -> None:
        text = " ".join(words)
        self.texts[story_id] = text
        outcome = Fingerprinted(Story(story_id, language, title=f"title {story_id}"), fingerprint(tokens(text)), None)
        await self.ledger.do(stories.commit, stories.Batch([outcome], [], 1, {}, None))

    async def index_all(self) -> None:
        await refuse_mismatch(self.index, self.ledger, VERSION)
        await catch_up(self.index, self.ledger, VERSION)


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    with closing(Ledger(tmp_path / "neardup.db")) as ledger, closing(await open_passages(ledger)) as passages:
        platform = Platform(ledger, passages)
        yield platform
        await platform.index.close()


@pytest.mark.parametrize("language", LANGUAGES)
async def test_copies_are_found_most_severe_first(platform: Platform, language: Language) -> None:
    original = words_of(language, "a")
    await platform.add(language, 3, words_of(language, "c", 80) + original[:150])
    await platform.add(language, 5, original[:150] + words_of(language, "b", 50))
    await platform.add(language, ORIGINAL, original)
    await platform.add(language, 9, words_of(language, "unrelated"))
    await platform.index_all()
    matches = await platform.checker.check(story(original), language)
    assert [(match.story_id, match.kind) for match in matches] == [
        (ORIGINAL, EXACT),
        (5, SIMILAR),
        (3, SIMILAR),
    ]
    assert (matches[0].title, matches[0].jaccard, matches[0].estimated) == (f"title {ORIGINAL}", 1.0, False)
    assert all(match.story_id != CHECKED_ID for match in matches)
    assert await platform.checker.check(story(words_of(language, "new")), language) == []


async def test_an_exact_copy_is_found_without_a_read(platform: Platform) -> None:
    original = words_of(TAMIL, "a")
    await platform.add(TAMIL, ORIGINAL, original)
    await platform.index_all()
    [match] = await platform.checker.check(story(original), TAMIL)
    assert (match.kind, platform.reads) == (EXACT, Counter()), "it started a reader process without need"


async def test_a_text_is_read_once_for_many_checks(platform: Platform) -> None:
    original = words_of(HINDI, "a")
    await platform.add(HINDI, ORIGINAL, original)
    await platform.index_all()
    excerpts = [story(original[:n]) for n in range(150, 160)]
    await platform.checker.check(excerpts[0], HINDI)
    found = await asyncio.gather(*(platform.checker.check(excerpt, HINDI) for excerpt in excerpts))
    assert [[match.story_id for match in matches] for matches in found] == [[ORIGINAL]] * len(excerpts)
    assert platform.reads == {ORIGINAL: 1}


async def test_without_the_store_scores_are_estimated(platform: Platform) -> None:
    original = words_of(ODIA, "a")
    await platform.add(ODIA, ORIGINAL, original)
    await platform.index_all()
    platform.is_available = False
    [match] = await platform.checker.check(story(original[:170]), ODIA)
    assert match.estimated and match.longest_run_words is match.copied_words is None


async def test_an_index_that_was_never_filled_is_refused(platform: Platform) -> None:
    await platform.add(HINDI, ORIGINAL, words_of(HINDI, "a"))
    with stamina.set_testing(True, attempts=1), pytest.raises(Transient, match="behind the ledger"):
        await platform.checker.check(story(words_of(HINDI, "b")), HINDI)
