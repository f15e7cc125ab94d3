"""Laws of the checker: it finds what a run would flag, reads only what it must, and keeps what it has read."""

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
from neardup.core.fingerprint.version import TEXTS
from neardup.core.page import PageText, shingle_story, split_story
from neardup.core.text.normalize import tokens
from neardup.errors import Transient
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, stories
from neardup.pages.results import ReadFailed, ShingledResult
from neardup.pages.text_cache import Texts
from neardup.pipeline.index_sync import catch_up, refuse_mismatch
from neardup.query.check import CHECKED_ID, Checker
from neardup.records import Dead, Fingerprinted, Kind, Language, Story

ORIGINAL = 7


def words_of(language: Language, name: str, n: int = 200) -> list[str]:
    words = [word.decode() for word in tokens(TEXTS[language])]
    return [f"{words[k % len(words)]}{name}{k}" for k in range(n)]


def story(words: list[str]) -> PageText:
    made = split_story(" ".join(words))
    assert isinstance(made, PageText)
    return made


class Platform:
    """A ledger with its index, and the texts of its stories, whose reads are counted."""

    def __init__(self, folder: Path) -> None:
        self.ledger = Ledger(folder / "neardup.db")
        self.index = SqliteIndex(folder / "neardup.db", Detection().bandings)
        self.texts: dict[int, str] = {}
        self.reads: Counter[int] = Counter()
        self.answers = True
        self.checker = Checker(self.index, self.ledger, Texts(self._shingled), Detection())

    async def _shingled(self, story: Story) -> ShingledResult:
        self.reads[story.id] += 1
        if not self.answers:
            return ReadFailed(Dead.STORE_ERROR, "no answer")
        return shingle_story(self.texts[story.id])

    async def add(self, language: Language, story_id: int, words: list[str]) -> None:
        text = " ".join(words)
        self.texts[story_id] = text
        made = Fingerprinted(Story(story_id, language, title=f"title {story_id}"), fingerprint(tokens(text)), None)
        await self.ledger.do(stories.commit, stories.Batch([made], [], 1, {}, None))

    async def index_all(self) -> None:
        version = fingerprint_version.version()
        await refuse_mismatch(self.index, self.ledger, version)
        await catch_up(self.index, self.ledger, version)


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    made = Platform(tmp_path)
    with closing(made.ledger):
        yield made
        await made.index.close()


@pytest.mark.parametrize("language", Language)
async def test_every_kind_is_found_worst_first(platform: Platform, language: Language) -> None:
    original = words_of(language, "a")
    await platform.add(language, 3, words_of(language, "c", 80) + original[:150])
    await platform.add(language, 5, original[:150] + words_of(language, "b", 50))
    await platform.add(language, ORIGINAL, original)
    await platform.add(language, 9, words_of(language, "unrelated"))
    await platform.index_all()
    matches = await platform.checker.check(story(original), language)
    assert [(match.story_id, match.kind) for match in matches] == [
        (ORIGINAL, Kind.EXACT),
        (5, Kind.SIMILAR),
        (3, Kind.SIMILAR),
    ]
    assert (matches[0].title, matches[0].jaccard, matches[0].estimated) == (f"title {ORIGINAL}", 1.0, False)
    assert all(match.story_id != CHECKED_ID for match in matches)
    assert await platform.checker.check(story(words_of(language, "new")), language) == []


async def test_an_exact_copy_is_found_without_a_read(platform: Platform) -> None:
    original = words_of(Language.TAMIL, "a")
    await platform.add(Language.TAMIL, ORIGINAL, original)
    await platform.index_all()
    [match] = await platform.checker.check(story(original), Language.TAMIL)
    assert (match.kind, platform.reads) == (Kind.EXACT, Counter()), "a reader process would start for nothing"


async def test_what_was_read_is_kept_for_later_checks(platform: Platform) -> None:
    original = words_of(Language.HINDI, "a")
    await platform.add(Language.HINDI, ORIGINAL, original)
    await platform.index_all()
    edited = [story(original[:n]) for n in range(150, 160)]
    await platform.checker.check(edited[0], Language.HINDI)
    found = await asyncio.gather(*(platform.checker.check(one, Language.HINDI) for one in edited))
    assert [[match.story_id for match in matches] for matches in found] == [[ORIGINAL]] * len(edited)
    assert platform.reads == {ORIGINAL: 1}


async def test_a_silent_store_leaves_estimated_scores(platform: Platform) -> None:
    original = words_of(Language.ODIA, "a")
    await platform.add(Language.ODIA, ORIGINAL, original)
    await platform.index_all()
    platform.answers = False
    [match] = await platform.checker.check(story(original[:170]), Language.ODIA)
    assert match.estimated and match.longest_run_words is None


async def test_an_index_that_was_never_filled_is_refused(platform: Platform) -> None:
    await platform.add(Language.HINDI, ORIGINAL, words_of(Language.HINDI, "a"))
    with stamina.set_testing(True, attempts=1), pytest.raises(Transient, match="behind the ledger"):
        await platform.checker.check(story(words_of(Language.HINDI, "b")), Language.HINDI)
