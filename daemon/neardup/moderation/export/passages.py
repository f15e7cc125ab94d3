"""What the pairs of a small export have copied, by their texts as they are now."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import structlog

from neardup.app import open_readers
from neardup.config import Config
from neardup.errors import Transient
from neardup.ledger import read, stories, translated
from neardup.moderation.evidence.pieces import Pair as Passage
from neardup.moderation.evidence.pieces import shared
from neardup.pages.reader_pool import Readers
from neardup.query.compare import Told, Untold, evidence, limits_of, tell

MOST_PAIRS = 200  # more would keep the store busy for what nobody reads in one sitting
PAIRS_AT_ONCE = 8  # whose texts are held
SHOWN = 3  # of the passages of a pair, the longest

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Copied:
    """The longest passages of a pair, how many others there are, and how much of A, the match, and B all cover."""

    passages: tuple[Passage, ...]
    more: int
    share_a: float
    share_b: float


async def copied_in(config: Config, pairs: Mapping[int, tuple[int, int]]) -> dict[int, Copied]:
    """Flag -> what its stories A and B share; no entry where a text is not to be had."""
    with closing(read(config.ledger.path)) as db, translated(config.ledger.path):
        rows = stories.describe(db, {story for pair in pairs.values() for story in pair})
    known = {story: dict(row) for story, row in rows.items()}
    left = list(pairs.items())
    found: dict[int, Copied] = {}
    readers = open_readers(config)
    try:
        while left:
            some, left = left[:PAIRS_AT_ONCE], left[PAIRS_AT_ONCE:]
            told = await _told(config, readers, known, [story for _, pair in some for story in pair])
            for flag_id, (a, b) in some:
                copied = await asyncio.to_thread(_copied, config, told.get(a), told.get(b))
                if copied is not None:
                    found[flag_id] = copied
    except Transient as error:
        log.warning("the texts are away: an export without passages", why=str(error))
    finally:
        readers.close()
    return found


async def _told(
    config: Config, readers: Readers, known: Mapping[int, Mapping[str, Any]], ids: Sequence[int]
) -> dict[int, Told | Untold]:
    wanted = [story for story in dict.fromkeys(ids) if story in known]
    return dict(zip(wanted, await asyncio.gather(*(tell(config, readers, known[n]) for n in wanted)), strict=True))


def _copied(config: Config, a: Told | Untold | None, b: Told | Untold | None) -> Copied | None:
    if not (isinstance(a, Told) and isinstance(b, Told)):
        return None
    facts = evidence(a, b, limits_of(config, a, b))
    both = shared(facts, a, b)
    longest = sorted(both.pairs, key=lambda pair: -pair.words)[:SHOWN]
    shown = sorted(longest, key=lambda pair: pair.first)
    return Copied(tuple(shown), both.more + len(both.pairs) - len(shown), facts["share_a"], facts["share_b"])
