"""The texts of candidates, read from the object store; cached, since many stories share a match."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import Enum
from operator import attrgetter

from cachetools import LRUCache

from neardup.core.verify.scores import ComparedPair
from neardup.core.verify.text import Text
from neardup.pages.results import ReadFailed, TextResult
from neardup.records import Candidate, Dead, PairedStory, Story
from neardup.telemetry.log import log

CACHE_BYTES = 128_000_000  # half of it is for grams, which few texts need
MOST_READS = 16  # under way at a time
MIN_TEXTS_TO_WARN = 20  # fewer texts allow no conclusion about [content]


class NoText(Enum):
    """Why there is no text."""

    GONE = "gone"  # no page contains it any more
    UNANSWERED = "unanswered"  # the store did not answer; a later attempt may succeed


RETRIABLE = {Dead.STORE_ERROR, Dead.FORBIDDEN}  # failures after which a later attempt may succeed

FoundText = Text | NoText


class Texts:
    """Reads the texts of candidates; `read` reads one, as `ReaderPool.read_to_compare` does."""

    def __init__(self, read: Callable[[Story], Awaitable[TextResult]]) -> None:
        self._read_one = read
        self._read_slots = asyncio.Semaphore(MOST_READS)
        self._cache: LRUCache[bytes, Text] = LRUCache(CACHE_BYTES, attrgetter("nbytes"))

    def keep(self, text: Text) -> None:
        """Keep a text to compare in the cache."""
        if text.nbytes <= CACHE_BYTES:
            self._cache[text.text_hash] = text

    async def read(self, sides: Iterable[PairedStory], until: float | None = None) -> dict[bytes, FoundText]:
        """Text hash -> text, for each of these stories.  Raises Fatal.

        Stories with the same text hash are read until one of them yields the text.  A text is gone, too, if its page
        now contains another.  A text that is not read at `until`, a time of the event loop, is unanswered.
        """
        wanted: dict[bytes, dict[int, Story]] = {}
        for side in sides:
            wanted.setdefault(side.text_hash, {})[side.id] = Story(side.id, side.language, side.path)
        texts: dict[bytes, FoundText] = {key: self._cache[key] for key in wanted if key in self._cache}
        missing = [key for key in wanted if key not in texts]
        read = await asyncio.gather(*(self._find_in_time(key, list(wanted[key].values()), until) for key in missing))
        for text in read:
            if isinstance(text, Text):
                self.keep(text)
        gone, answered = read.count(NoText.GONE), len(read) - read.count(NoText.UNANSWERED)
        if answered >= MIN_TEXTS_TO_WARN and 2 * gone > answered:
            log.warning("most texts are gone, so signatures decide: is [content] right?", gone=gone, read=answered)
        return texts | dict(zip(missing, read, strict=True))

    async def read_pairs(
        self, pairs: Sequence[Candidate], unanswered: frozenset[bytes] = frozenset()
    ) -> tuple[list[ComparedPair], frozenset[bytes]]:
        """The pairs with their texts, None for one that cannot be read, and the hashes of the texts unanswered so far.

        Those that were `unanswered` before are not read again, and equal texts need not be read.  Raises Fatal.
        """
        wanted = (pair for pair in pairs if pair.a.text_hash != pair.b.text_hash)
        sides = (pair for pair in wanted if not unanswered & {pair.a.text_hash, pair.b.text_hash})
        read = await self.read(side for pair in sides for side in (pair.a, pair.b))
        texts = {text_hash: text for text_hash, text in read.items() if isinstance(text, Text)}
        compared = [ComparedPair(pair, texts.get(pair.a.text_hash), texts.get(pair.b.text_hash)) for pair in pairs]
        return compared, unanswered | {text_hash for text_hash, text in read.items() if text is NoText.UNANSWERED}

    async def _find_in_time(self, key: bytes, stories: Sequence[Story], until: float | None) -> FoundText:
        try:
            async with asyncio.timeout_at(until):
                return await self._find_first(key, stories)
        except TimeoutError:
            return NoText.UNANSWERED

    async def _find_first(self, key: bytes, stories: Sequence[Story]) -> FoundText:
        """The text with this hash, from the first of these stories whose page still contains it."""
        unanswered = False
        for story in stories:
            text = await self._read(story, key)
            if isinstance(text, Text):
                return text
            unanswered |= text is NoText.UNANSWERED
        return NoText.UNANSWERED if unanswered else NoText.GONE

    async def _read(self, story: Story, key: bytes) -> FoundText:
        async with self._read_slots:
            result = await self._read_one(story)
        match result:
            case Text() as text if text.text_hash == key:
                return text
            case ReadFailed(reason, error) if reason in RETRIABLE:
                log.warning("a text could not be read, its candidates wait", story=story.path or story.id, why=error)
                return NoText.UNANSWERED
            case ReadFailed(error=error):
                log.error("a text could not be read", story=story.path or story.id, why=error)
        return NoText.GONE
