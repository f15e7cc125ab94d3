"""The copied passages of the pairs of a small export, from the current texts."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from neardup.config import Config
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.errors import Transient
from neardup.ledger import open_snapshot, stories
from neardup.ledger.passages import read_common
from neardup.moderation.evidence.alignment import PassagePair, align_stories
from neardup.pages.reader_pool import OpenReaderPool, ReaderPool
from neardup.query.compare import load_story
from neardup.query.evidence import LoadedStory, UnreadableStory, find_evidence, find_language
from neardup.records import Language
from neardup.telemetry.log import log

MAX_PAIRS_WITH_PASSAGES = 200  # reading more texts would burden the store for more than a person reads
PAIRS_IN_MEMORY = 8  # pairs whose texts are held in memory at a time
MAX_PASSAGES = 3  # per pair, the longest first


class CopiedPassages(Struct, frozen=True):
    """The longest passages of a pair (A is the match).

    `more` is the number of other passages; the shares are those of the words of A and B that are copied; `rare_words`
    are those by which one is the other rewritten.
    """

    passages: tuple[PassagePair, ...]
    more: int
    share_a: float
    share_b: float
    rare_words: tuple[str, ...] = ()


async def find_copied_passages(
    config: Config, open_pool: OpenReaderPool, pairs: Mapping[int, tuple[int, int]]
) -> dict[int, CopiedPassages]:
    """The passages of each flag's pair (A, B) of stories, by flag id; no entry if a text cannot be read."""
    with open_snapshot(config.ledger.path) as db:
        known = stories.describe(db, {story for pair in pairs.values() for story in pair})
        common = {language: read_common(db, language) for language in {row["language"] for row in known.values()}}
    remaining = list(pairs.items())
    copied: dict[int, CopiedPassages] = {}
    pool = open_pool()
    try:
        while remaining:
            batch, remaining = remaining[:PAIRS_IN_MEMORY], remaining[PAIRS_IN_MEMORY:]
            texts = await _load(pool, known, [story for _, pair in batch for story in pair])
            for flag_id, (a, b) in batch:
                passages = await asyncio.to_thread(_find_copied, config, texts.get(a), texts.get(b), common)
                if passages is not None:
                    copied[flag_id] = passages
    except Transient as error:
        log.warning("the store does not answer; the export has no further passages", why=str(error))
    finally:
        await pool.aclose()
    return copied


async def _load(
    pool: ReaderPool, known: Mapping[int, Mapping[str, Any]], ids: Sequence[int]
) -> dict[int, LoadedStory | UnreadableStory]:
    wanted = [story for story in dict.fromkeys(ids) if story in known]
    return dict(zip(wanted, await asyncio.gather(*(load_story(pool, known[n]) for n in wanted)), strict=True))


def _find_copied(
    config: Config,
    a: LoadedStory | UnreadableStory | None,
    b: LoadedStory | UnreadableStory | None,
    common: Mapping[Language, PassageHashes],
) -> CopiedPassages | None:
    if not (isinstance(a, LoadedStory) and isinstance(b, LoadedStory)):
        return None
    language = find_language(a, b)
    assert language is not None, "the ledger has both stories"
    facts = find_evidence(a, b, config.detection.of(language), common[language])
    aligned = align_stories(facts, a, b)
    longest = sorted(aligned.pairs, key=lambda pair: -pair.words)[:MAX_PASSAGES]
    shown = sorted(longest, key=lambda pair: pair.first)
    return CopiedPassages(
        tuple(shown),
        aligned.more + len(aligned.pairs) - len(shown),
        facts.share_a or 0.0,
        facts.share_b or 0.0,
        facts.rare_words,
    )
