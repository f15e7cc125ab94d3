"""The texts of candidates, read from the object store; cached, since many stories share a match."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from operator import attrgetter

from cachetools import LRUCache

from neardup.core.verify.scores import ComparedPair
from neardup.core.verify.text import Text
from neardup.pages.results import DeliverText, ReadFailed, ReadTexts, TextResult
from neardup.records import Candidate, Dead, PairedStory, Story
from neardup.telemetry.log import log

CACHE_BYTES = 128_000_000  # half of it is for grams, which few texts need
TEXTS_A_REQUEST = 16  # so that several processes share the texts of one batch
MOST_REQUESTS = 16  # under way at a time
MIN_TEXTS_TO_WARN = 20  # fewer texts allow no conclusion about [content]


class NoText(Enum):
    """Why there is no text."""

    GONE = "gone"  # no page contains it any more
    UNANSWERED = "unanswered"  # the store did not answer; a later attempt may succeed


RETRIABLE = {Dead.STORE_ERROR, Dead.FORBIDDEN}  # failures after which a later attempt may succeed

FoundText = Text | NoText


class Texts:
    """Reads the texts of candidates by `read`, as `ReaderPool.read_to_compare` does."""

    def __init__(self, read: ReadTexts) -> None:
        self._read = read
        self._read_slots = asyncio.Semaphore(MOST_REQUESTS)
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
        missing = {key: stories.values() for key, stories in wanted.items() if key not in texts}
        found = await self._read_missing(missing, until)
        read = list(found.values())
        for text in read:
            if isinstance(text, Text):
                self.keep(text)
        gone, answered = read.count(NoText.GONE), len(read) - read.count(NoText.UNANSWERED)
        if answered >= MIN_TEXTS_TO_WARN and 2 * gone > answered:
            log.warning("most texts are gone, so signatures decide: is [content] right?", gone=gone, read=answered)
        return texts | found

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

    async def _read_missing(
        self, wanted: Mapping[bytes, Iterable[Story]], until: float | None
    ) -> dict[bytes, FoundText]:
        """The text with each hash, from the first of its stories whose page still contains it."""
        found: dict[bytes, FoundText] = dict.fromkeys(wanted, NoText.UNANSWERED)
        left, unanswered = {key: list(stories) for key, stories in wanted.items()}, set[bytes]()

        def receive(story: Story, result: TextResult) -> None:
            key = key_of[story.id]
            text = _judge(story, result, key)
            if text is NoText.UNANSWERED:
                unanswered.add(key)
            left[key].pop(0)
            if isinstance(text, Text) or not left[key]:
                del left[key]
                found[key] = NoText.UNANSWERED if text is NoText.GONE and key in unanswered else text

        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while key_of := {stories[0].id: key for key, stories in left.items()}:
                    await self._read_all([left[key][0] for key in key_of.values()], receive)
        return found

    async def _read_all(self, stories: Sequence[Story], deliver: DeliverText) -> None:
        async def read_part(part: Sequence[Story]) -> None:
            async with self._read_slots:
                await self._read(part, deliver)

        parts = (stories[at : at + TEXTS_A_REQUEST] for at in range(0, len(stories), TEXTS_A_REQUEST))
        await asyncio.gather(*map(read_part, parts))


def _judge(story: Story, result: TextResult, key: bytes) -> FoundText:
    """What reading a story gives of the text with this hash."""
    match result:
        case Text() as text if text.text_hash == key:
            return text
        case ReadFailed(reason, error) if reason in RETRIABLE:
            log.warning("a text could not be read, its candidates wait", story=story.path or story.id, why=error)
            return NoText.UNANSWERED
        case ReadFailed(error=error):
            log.error("a text could not be read", story=story.path or story.id, why=error)
    return NoText.GONE
