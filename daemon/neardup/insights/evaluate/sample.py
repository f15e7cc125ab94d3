"""Stories to copy, drawn from those that the configured source lists."""

import asyncio
import heapq
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import xxhash

from neardup.app import open_readers, open_source
from neardup.config import Config
from neardup.core.page import PageText
from neardup.errors import Fatal
from neardup.pages.reader_pool import ReaderPool
from neardup.records import Checkpoint, Language, Story

TRIED = 20  # stories read at most for each that is wanted, as many are too short


@dataclass(frozen=True, slots=True)
class Original:
    """A story as it was read."""

    id: int
    language: Language
    text: str


async def sample(
    config: Config, stories: int, min_words: int, seed: int, listed: Callable[[int], None]
) -> dict[Language, list[Original]]:
    """That many stories of each language, of `min_words` and more; the same ones for the same listing and seed.

    `listed` is told how many have been listed.  Raises Fatal where there are no two such stories of any
    language.
    """
    out = {}
    async with aclosing(open_readers(config)) as pool:
        for language, drawn in (await _drawn(config, stories * TRIED, seed, listed)).items():
            originals = await _read(pool, drawn, stories, min_words, config.run.workers)
            if len(originals) > 1:  # the copies of one draw on the others
                out[language] = originals
    if not out:
        raise Fatal(f"no language has two readable stories of {min_words} words and more: give a lower --min-words")
    return out


async def _drawn(
    config: Config, limit: int, seed: int, listed: Callable[[int], None]
) -> dict[Language, Sequence[Story]]:
    """By language the stories whose ids hash the lowest, lowest first: a random sample of bounded size."""

    async def began(_: Checkpoint) -> None: ...

    heaps: dict[Language, list[tuple[int, int, Story]]] = {language: [] for language in config.registry}
    count = 0
    async for story in open_source(config, began).stories(since=None, resume=None):
        count += 1
        listed(count)
        if isinstance(story, Story):
            heap = heaps[story.language]
            rank = xxhash.xxh3_64_intdigest(f"{seed}:{story.id}".encode())
            heapq.heappush(heap, (-rank, -count, story))
            if len(heap) > limit:
                heapq.heappop(heap)
    # Listed twice, a story is the one listed last.
    return {
        language: list({story.id: story for *_, story in sorted(heap, reverse=True)}.values())
        for language, heap in heaps.items()
        if heap
    }


async def _read(pool: ReaderPool, drawn: Sequence[Story], wanted: int, min_words: int, step: int) -> list[Original]:
    async def read(story: Story) -> Original | None:
        result = await pool.text(story)
        if not isinstance(result, PageText) or len(result.words) < min_words:
            return None
        return Original(story.id, story.language, result.text)

    originals: list[Original] = []
    for start in range(0, len(drawn), step):
        read_now = await asyncio.gather(*map(read, drawn[start : start + step]))
        originals += filter(None, read_now)
        if len(originals) >= wanted:
            break
    return originals[:wanted]
