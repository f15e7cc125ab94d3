"""The texts of stories, read again from the object store; bounded, since many stories share a match."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum

import structlog
from cachetools import LRUCache

from neardup.core.page import PageShingled
from neardup.core.verify.scores import Shingled
from neardup.pages.results import ReadFailed, ShingledResult
from neardup.records import Dead, Language, Side, Story

CACHE_BYTES = 64_000_000
READS = 16  # under way at a time
FEW = 20  # so many texts say nothing of the store


class NoText(Enum):
    """Why there is no text."""

    GONE = "gone"  # no page holds it any more
    UNANSWERED = "unanswered"  # the store did not give it: it may later


LATER = {Dead.STORE_ERROR, Dead.FORBIDDEN}  # failures after which a text may be read another time

Text = Shingled | NoText

log = structlog.get_logger()


class Texts:
    """Reads the texts of candidates by `read_shingled`, as a reader pool has it."""

    def __init__(self, read_shingled: Callable[[Story], Awaitable[ShingledResult]]) -> None:
        self._read_shingled = read_shingled
        self._reads = asyncio.Semaphore(READS)
        self._cache: LRUCache[bytes, Shingled] = LRUCache(CACHE_BYTES, _size)

    async def read(self, sides: Iterable[tuple[Language, Side]]) -> dict[bytes, Text]:
        """Text hash -> text, of each of these stories.  Raises Fatal.

        Of stories that share a text any will do.  A text is gone, too, where its page now holds another.
        """
        wanted: dict[bytes, dict[int, Story]] = {}
        for language, side in sides:
            wanted.setdefault(side.text_hash, {})[side.id] = Story(side.id, language, side.path)
        texts: dict[bytes, Text] = {key: self._cache[key] for key in wanted if key in self._cache}
        missing = [key for key in wanted if key not in texts]
        read = await asyncio.gather(*(self._first_of(key, list(wanted[key].values())) for key in missing))
        for key, text in zip(missing, read, strict=True):
            if isinstance(text, Shingled) and _size(text) <= CACHE_BYTES:
                self._cache[key] = text
        gone, answered = read.count(NoText.GONE), len(read) - read.count(NoText.UNANSWERED)
        if answered >= FEW and 2 * gone > answered:
            log.warning("most texts are gone, signatures decide: is [content] right?", gone=gone, read=answered)
        return texts | dict(zip(missing, read, strict=True))

    async def _first_of(self, key: bytes, stories: Sequence[Story]) -> Text:
        """The text with this hash, from the first of the stories that still has it."""
        unanswered = False
        for story in stories:
            text = await self._read(story, key)
            if isinstance(text, Shingled):
                return text
            unanswered |= text is NoText.UNANSWERED
        return NoText.UNANSWERED if unanswered else NoText.GONE

    async def _read(self, story: Story, key: bytes) -> Text:
        async with self._reads:
            result = await self._read_shingled(story)
        match result:
            case PageShingled(text_hash, text) if text_hash == key:
                return text
            case ReadFailed(reason, error) if reason in LATER:
                log.warning("a text could not be read, its candidates wait", story=story.id, why=error)
                return NoText.UNANSWERED
            case ReadFailed(error=error):
                log.error("a text could not be read", story=story.id, why=error)
        return NoText.GONE


def _size(text: Shingled) -> int:
    return text.words.nbytes + text.shingles.nbytes
