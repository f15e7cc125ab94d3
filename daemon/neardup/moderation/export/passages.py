"""What the pairs of a small export have copied, by their texts as they are now."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import structlog

from neardup.config import Config
from neardup.errors import Transient
from neardup.ledger import read, stories, translated
from neardup.moderation.evidence.pieces import Pair as Passage
from neardup.moderation.evidence.pieces import shared
from neardup.pages.reader_pool import OpenReaderPool, ReaderPool
from neardup.query.compare import load_story
from neardup.query.evidence import LoadedStory, UnreadableStory, evidence, thresholds_of

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


async def copied_in(
    config: Config, open_pool: OpenReaderPool, pairs: Mapping[int, tuple[int, int]]
) -> dict[int, Copied]:
    """Flag -> what its stories A and B share; no entry where a text cannot be read."""
    with closing(read(config.ledger.path)) as db, translated(config.ledger.path):
        rows = stories.describe(db, {story for pair in pairs.values() for story in pair})
    known = {story: dict(row) for story, row in rows.items()}
    left = list(pairs.items())
    found: dict[int, Copied] = {}
    pool = open_pool()
    try:
        while left:
            some, left = left[:PAIRS_AT_ONCE], left[PAIRS_AT_ONCE:]
            texts = await _load(pool, known, [story for _, pair in some for story in pair])
            for flag_id, (a, b) in some:
                copied = await asyncio.to_thread(_copied, config, texts.get(a), texts.get(b))
                if copied is not None:
                    found[flag_id] = copied
    except Transient as error:
        log.warning("the store does not answer: an export without passages", why=str(error))
    finally:
        await pool.aclose()
    return found


async def _load(
    pool: ReaderPool, known: Mapping[int, Mapping[str, Any]], ids: Sequence[int]
) -> dict[int, LoadedStory | UnreadableStory]:
    wanted = [story for story in dict.fromkeys(ids) if story in known]
    return dict(zip(wanted, await asyncio.gather(*(load_story(pool, known[n]) for n in wanted)), strict=True))


def _copied(
    config: Config, a: LoadedStory | UnreadableStory | None, b: LoadedStory | UnreadableStory | None
) -> Copied | None:
    if not (isinstance(a, LoadedStory) and isinstance(b, LoadedStory)):
        return None
    facts = evidence(a, b, thresholds_of(config.detection, a, b))
    both = shared(facts, a, b)
    longest = sorted(both.pairs, key=lambda pair: -pair.words)[:SHOWN]
    shown = sorted(longest, key=lambda pair: pair.first)
    return Copied(tuple(shown), both.more + len(both.pairs) - len(shown), facts.share_a or 0.0, facts.share_b or 0.0)
