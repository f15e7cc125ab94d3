"""Draws a random sample of the stories that the configured source lists, for an evaluation to make copies of."""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import xxhash

from neardup.app import open_readers
from neardup.config import Config
from neardup.core.page import PageText
from neardup.errors import Fatal
from neardup.pages.reader_pool import ReaderPool
from neardup.records import Checkpoint, Language, Story
from neardup.source import rows_of
from neardup.source.listings import open_source

TRIED = 20  # stories drawn for each one wanted, because many may be too short


@dataclass(frozen=True, slots=True)
class Original:
    """A story and its text."""

    id: int
    language: Language
    text: str


async def sample(
    config: Config, stories: int, min_words: int, seed: int, show_listed: Callable[[int], None]
) -> dict[Language, list[Original]]:
    """Draw `stories` stories of each language with at least `min_words` words.

    The same listing and seed give the same stories.  `show_listed` is called with the number of stories listed so far.
    Raises Fatal if no language has two such stories.
    """
    out = {}
    async with aclosing(open_readers(config)) as pool:
        for language, drawn in (await _draw(config, stories * TRIED, seed, show_listed)).items():
            originals = await _read(pool, drawn, stories, min_words, config.run.workers)
            if len(originals) > 1:  # an edit takes words from another story
                out[language] = originals
    if not out:
        raise Fatal(f"no language has two readable stories of at least {min_words} words: give a lower --min-words")
    return out


async def _draw(
    config: Config, limit: int, seed: int, show_listed: Callable[[int], None]
) -> dict[Language, Sequence[Story]]:
    """Draw up to `limit` stories of each language, those whose ids have the lowest hashes: a random sample."""

    async def ignore_checkpoint(_: Checkpoint) -> None: ...

    heaps: dict[Language, list[tuple[int, int, Story]]] = {language: [] for language in config.registry}
    count = 0
    async for story in rows_of(open_source(config, ignore_checkpoint)):
        count += 1
        show_listed(count)
        if isinstance(story, Story):
            heap = heaps[story.language]
            rank = xxhash.xxh3_64_intdigest(f"{seed}:{story.id}".encode())
            heapq.heappush(heap, (-rank, -count, story))  # negated: heappop removes the highest rank
            if len(heap) > limit:
                heapq.heappop(heap)
    # If a story is listed twice, its last row counts.
    return {
        language: list({story.id: story for *_, story in sorted(heap, reverse=True)}.values())
        for language, heap in heaps.items()
        if heap
    }


async def _read(pool: ReaderPool, drawn: Sequence[Story], wanted: int, min_words: int, step: int) -> list[Original]:
    """The first `wanted` drawn stories that have enough words, reading `step` pages at a time."""

    async def read(story: Story) -> Original | None:
        result = await pool.text(story)
        if not isinstance(result, PageText) or len(result.words) < min_words:
            return None
        return Original(story.id, story.language, result.text)

    originals: list[Original] = []
    for start in range(0, len(drawn), step):
        originals += filter(None, await asyncio.gather(*map(read, drawn[start : start + step])))
        if len(originals) >= wanted:
            break
    return originals[:wanted]
