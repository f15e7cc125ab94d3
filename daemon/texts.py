"""The texts of stories, read again from the object store; bounded, since many stories share a match."""

import asyncio
from collections.abc import Iterable

import structlog
from cachetools import LRUCache

from daemon.core.fingerprint import text_hash
from daemon.core.html import Extraction, Unreadable, page_text
from daemon.core.text import tokens
from daemon.core.verify import Shingled, shingled
from daemon.errors import Gone, Transient
from daemon.fetch import Fetcher, Forbidden, TooLarge
from daemon.records import Language, Side, Story

CACHE_BYTES = 64_000_000
READS = 16  # under way at a time

log = structlog.get_logger()


class Texts:
    """Reads the texts of one run's candidates."""

    def __init__(self, fetcher: Fetcher, extraction: Extraction) -> None:
        self._fetcher = fetcher
        self._extraction = extraction
        self._reads = asyncio.Semaphore(READS)
        self._cache: LRUCache[bytes, Shingled] = LRUCache(CACHE_BYTES, _size)

    async def read(self, sides: Iterable[tuple[Language, Side]]) -> dict[bytes, Shingled | None]:
        """Text hash -> text; None where it is gone, no entry where the store did not answer.

        A page that no longer holds the text that was fingerprinted is gone, too.
        """
        wanted = {side.text_hash: (language, side) for language, side in sides}
        held = {key: self._cache[key] for key in wanted if key in self._cache}
        missing = [(language, side) for key, (language, side) in wanted.items() if key not in held]
        read = await asyncio.gather(*(self._read(language, side) for language, side in missing))
        texts: dict[bytes, Shingled | None] = dict(held)
        for (_, side), (answered, text) in zip(missing, read, strict=True):
            if answered:
                texts[side.text_hash] = text
            if text is not None and _size(text) <= CACHE_BYTES:
                self._cache[side.text_hash] = text
        return texts

    async def _read(self, language: Language, side: Side) -> tuple[bool, Shingled | None]:
        """Whether the store answered, and the text where it is still the one that was fingerprinted."""
        try:
            async with self._reads:
                document = await self._fetcher.get(Story(side.id, language, side.path))
            assert document is not None  # without an ETag a page is always given
            words = tokens(page_text(document.body, document.content_type, self._extraction))
        except (Gone, TooLarge, Unreadable):
            return True, None
        except (Transient, Forbidden) as error:
            log.warning("a text could not be read, its candidates wait", story=side.id, why=str(error))
            return False, None
        return True, shingled(words) if words and text_hash(words) == side.text_hash else None


def _size(text: Shingled) -> int:
    return text.words.nbytes + text.shingles.nbytes
