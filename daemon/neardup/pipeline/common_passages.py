"""Records the passage hashes that too many stories hold.  They nominate no candidates, and do not count as copied.

A hash becomes common when one more story comes to hold it.  Pairs that were flagged for it before are then verified
again, so the order in which stories arrive makes no difference.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.index.passages.lookup import Found
from neardup.ledger import Ledger, passages, verification
from neardup.ledger.passages import CommonPassage
from neardup.pipeline.passage_sync import PassageSync
from neardup.records import Language
from neardup.telemetry.metrics import COMMON_PASSAGES

MAX_HOLDERS = 5_000  # stories of a hash that has just become common; it was found common long before it has more


@dataclass(frozen=True, slots=True)
class Probe:
    """A story to look up: its id, its language and its passage hashes."""

    story_id: int
    language: Language
    hashes: PassageHashes


class CommonHashes:
    """The hashes of the common passages on record, by language; read again only after a change."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._revision = 0
        self._held: dict[Language, PassageHashes] = {}  # of this revision

    async def of(self, language: Language) -> PassageHashes:
        """The hashes of a language, ascending."""
        revision = await self._ledger.do(passages.common_revision)
        if revision != self._revision:
            self._revision, self._held = revision, {}
        if language not in self._held:
            self._held[language] = await self._ledger.do(passages.common_of_language, language)
        return self._held[language]


class CommonPassages:
    """The common passages that one process has found."""

    def __init__(self, passages: PassageSync, ledger: Ledger) -> None:
        self._passages = passages
        self._ledger = ledger
        self._holders: dict[Language, dict[int, int]] = {}  # by hash
        self._unwritten: dict[tuple[Language, int], CommonPassage] = {}

    async def record(self, probes: Sequence[Probe], found: Sequence[Found]) -> None:
        """Record the common passages that lookups found, and verify again what was flagged for new ones.

        That more stories hold a known one is written with the next new one, or by `write`.
        """
        new = set[int]()
        for probe, one in zip(probes, found, strict=True):
            if not len(one.common):
                continue
            known = await self._known(probe.language)
            COMMON_PASSAGES.labels(probe.language).inc(len(one.common))
            for hash_, holders in zip(one.common.tolist(), one.holders.tolist(), strict=True):
                if hash_ not in known:
                    new.add(hash_)
                if holders > known.get(hash_, 0):
                    known[hash_] = holders
                    passage = CommonPassage(probe.language, hash_, holders, probe.story_id)
                    self._unwritten[probe.language, hash_] = passage
        if new:
            await self.write()
            await self.verify_again(new)

    async def write(self) -> None:
        """Write to the ledger what was found since the last call."""
        rows, self._unwritten = list(self._unwritten.values()), {}
        if rows:
            await self._ledger.do(passages.record_common, rows)

    async def verify_again(self, new: Collection[int]) -> None:
        """Verify again the pairs that were flagged for passages which have just become common."""
        if new:
            hashes = np.array(sorted(new), np.uint32)
            numbers = await self._passages.ask(lambda: self._passages.index.holders(hashes, MAX_HOLDERS))
            await self._ledger.do(verification.request_reverification, numbers.tolist())

    async def _known(self, language: Language) -> dict[int, int]:
        if language not in self._holders:
            self._holders[language] = await self._ledger.do(passages.common_holders, language)
        return self._holders[language]
