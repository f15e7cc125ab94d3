"""The texts of stories, read again from the object store; bounded, since many stories share a match."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal

import structlog
from cachetools import LRUCache

from neardup.core.text.html import Unreadable
from neardup.core.verify.scores import Shingled
from neardup.errors import Fatal, Forbidden, Gone, TooLarge, Transient
from neardup.records import Language, Side, Story

CACHE_BYTES = 64_000_000
READS = 16  # under way at a time
FEW = 20  # so many texts say nothing of the store

Silence = Literal["silent"]  # the store did not answer

log = structlog.get_logger()


class Texts:
    """Reads the texts of one run's candidates; `ask` gives the hash of a story's text, and the text."""

    def __init__(self, ask: Callable[[Story], Awaitable[tuple[bytes, Shingled]]]) -> None:
        self._ask = ask
        self._reads = asyncio.Semaphore(READS)
        self._cache: LRUCache[bytes, Shingled] = LRUCache(CACHE_BYTES, _size)

    async def read(self, sides: Iterable[tuple[Language, Side]]) -> dict[bytes, Shingled | None]:
        """Text hash -> text; None where it is gone, no entry where the store did not answer.

        Of stories that share a text any will do.  A page that no longer holds the text that was
        fingerprinted is gone, too.
        """
        wanted: dict[bytes, dict[int, Story]] = {}
        for language, side in sides:
            wanted.setdefault(side.text_hash, {})[side.id] = Story(side.id, language, side.path)
        held = {key: self._cache[key] for key in wanted if key in self._cache}
        missing = [key for key in wanted if key not in held]
        read = await asyncio.gather(*(self._one_of(key, list(wanted[key].values())) for key in missing))
        found = {key: text for key, text in zip(missing, read, strict=True) if text != "silent"}
        for key, text in found.items():
            if text is not None and _size(text) <= CACHE_BYTES:
                self._cache[key] = text
        gone = sum(text is None for text in found.values())
        if len(found) >= FEW and 2 * gone > len(found):
            log.warning("most texts are gone, signatures decide: is [content] right?", gone=gone, read=len(found))
        return {**held, **found}

    async def _one_of(self, key: bytes, stories: Sequence[Story]) -> Shingled | Silence | None:
        """The text with this hash, from the first of the stories that still has it."""
        silent = False
        for story in stories:
            text = await self._read(story, key)
            if isinstance(text, Shingled):
                return text
            silent |= text == "silent"
        return "silent" if silent else None

    async def _read(self, story: Story, key: bytes) -> Shingled | Silence | None:
        try:
            async with self._reads:
                found, text = await self._ask(story)
        except (Gone, TooLarge, Unreadable):
            return None
        except (Transient, Forbidden) as error:
            log.warning("a text could not be read, its candidates wait", story=story.id, why=str(error))
            return "silent"
        except Fatal:
            raise
        except Exception:
            log.exception("a text could not be read", story=story.id)
            return None
        return text if found == key else None


def _size(text: Shingled) -> int:
    return text.words.nbytes + text.shingles.nbytes
