"""Nominates for one text, within a time: which stories of the ledger it is to be compared with.

Both indexes may lack the latest stories; the ledger has them.  An index that does not answer, or not in time, is done
without: the answer then says so.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Collection
from typing import NamedTuple, TypeVar

import numpy as np

from neardup.config import Detection
from neardup.core.candidates.select import MAX_UNINDEXED, NO_NUMBERS, select_matches
from neardup.core.fingerprint.word_hashes import MIN_SHARED, PassageHashes
from neardup.core.verify.alignment import NO_HASHES
from neardup.errors import Transient
from neardup.index.protocol import Index, LookupResult, refuse_index_mismatch
from neardup.ledger import Ledger, outbox, passages, runs, versions
from neardup.ledger.candidates import Matches
from neardup.ledger.languages import count_by_language
from neardup.nomination.common_passages import Passages
from neardup.nomination.matches import make_matches
from neardup.nomination.passages import PassageNomination
from neardup.nomination.stories import StoryProbe
from neardup.records import BandedFingerprint
from neardup.retry import retry_call

T = TypeVar("T")
HASH_BYTES = 4  # of a passage hash
NOTHING_FOUND = LookupResult(set(), NO_NUMBERS, {})


class LedgerFacts(NamedTuple):
    """The ledger's last change and id, and the languages of its stories."""

    last_change: int
    ledger_id: str
    languages: Collection[str]


class TextMatches(NamedTuple):
    """The ids of the stories to compare a text with, the best first: by its whole text, and by passages alone.

    `common` are the passage hashes of the text, ascending, that were found to be common.  `reasons` say what was done
    without.
    """

    whole: tuple[int, ...]
    by_passages: tuple[int, ...]
    common: PassageHashes
    reasons: tuple[str, ...]


class TextNominator:
    """Looks up single texts in the indexes of a ledger; safe for concurrent calls."""

    def __init__(self, index: Index, passages: Passages, ledger: Ledger, detection: Detection, version: str) -> None:
        self._index = index
        self._passages = passages
        self._nomination = PassageNomination(passages, ledger, detection)
        self._ledger = ledger
        self._detection = detection
        self._version = version

    async def nominate(self, probe: StoryProbe, facts: LedgerFacts, until: float | None) -> TextMatches:
        """Look a text up in both indexes, each until a time of the event loop.

        Raises Fatal for the index of another ledger or of another version of the fingerprints.
        """
        (whole, whole_reasons), (by_passages, common, reasons) = await asyncio.gather(
            self._by_whole_text(probe, facts, until), self._by_passages(probe, until)
        )
        only_by_passages = tuple(story_id for story_id in by_passages if story_id not in whole)
        return TextMatches(whole, only_by_passages, common, whole_reasons + reasons)

    async def _by_whole_text(
        self, probe: StoryProbe, facts: LedgerFacts, until: float | None
    ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        why, applied, found = "the index is behind the ledger", None, NOTHING_FOUND
        try:
            applied, found = await finish_in_time(
                retry_call("look_up", lambda: self._look_up(probe.banded, facts)),
                until,
                "the index did not answer in time",
            )
        except Transient as error:
            why = str(error)
        ids, uncovered = await self._ledger.do(_match_whole_text, probe, found, applied, self._detection)
        lacks = f"{why}: only the latest {MAX_UNINDEXED:,} stories were compared as whole texts"
        return ids, (lacks,) if uncovered else ()

    async def _look_up(self, banded: BandedFingerprint, facts: LedgerFacts) -> tuple[int | None, LookupResult]:
        refuse_index_mismatch(await self._index.read_position(), facts.ledger_id, self._version, facts.languages)
        applied, [found] = await self._index.look_up([banded])
        return applied, found

    async def _by_passages(
        self, probe: StoryProbe, until: float | None
    ) -> tuple[tuple[int, ...], PassageHashes, tuple[str, ...]]:
        late = "the passage index did not answer in time"
        try:
            ids, common = await finish_in_time(self._look_up_passages(probe), until, late)
        except Transient as error:
            return (), NO_HASHES, (f"{error}: passages inside other stories were not looked for",)
        return ids, common, ()

    async def _look_up_passages(self, probe: StoryProbe) -> tuple[tuple[int, ...], PassageHashes]:
        await self._passages.catch_up()
        lookup = await self._nomination.look_up_probes([probe.of_passages])
        matches, common = await self._nomination.nominate(lookup)
        most = 2 * self._detection.of(probe.banded.language).max_matches
        return matches[probe.story_id].ids[:most], common.hashes


def read_facts(db: sqlite3.Connection) -> LedgerFacts:
    """What a lookup needs to know of the ledger."""
    return LedgerFacts(outbox.read_last_seq(db), runs.get(db, "ledger_id") or "", count_by_language(db))


def _match_whole_text(
    db: sqlite3.Connection, probe: StoryProbe, found: LookupResult, applied: int | None, detection: Detection
) -> tuple[tuple[int, ...], int]:
    """The matches of a whole text, and the number of changes that neither index nor ledger could give."""
    held, latest, uncovered = versions.read_fingerprints_for_one_text(db, found, applied)
    language = probe.banded.language
    group = [probe.story_id], probe.banded
    own = detection.of(language)
    [nominee] = select_matches([group], [found], held, {language: own}, latest)
    return nominee.matches[: 2 * own.max_matches], uncovered


def find_unseen(db: sqlite3.Connection, probe: StoryProbe, seen: int, detection: Detection) -> Matches:
    """The matches of a text among the stories that were written after a change, which its lookups may have missed."""
    language, most = probe.banded.language, detection.of(probe.banded.language).max_matches
    late = versions.list_fingerprints_after(db, seen, MAX_UNINDEXED)
    held = versions.read_existing_fingerprints(db, (), ())
    group = [probe.story_id], probe.banded
    [nominee] = select_matches([group], [NOTHING_FOUND], held, {language: detection.of(language)}, late)
    rows = passages.list_hashes(db, seen, MAX_UNINDEXED)
    hashes = np.concatenate([NO_HASHES, *(np.frombuffer(packed, np.uint32) for _, packed in rows)])
    owners = np.repeat(np.arange(len(rows)), [len(packed) // HASH_BYTES for _, packed in rows])
    shared = np.bincount(owners[np.isin(hashes, probe.passages)], minlength=len(rows))
    numbers = [rows[nth][0] for nth in np.flatnonzero(shared >= MIN_SHARED).tolist()]
    ids = [story_id for story_id in versions.read_ids(db, numbers).values() if story_id != probe.story_id]
    by_passages = [story_id for story_id in ids[:most] if story_id not in nominee.matches]
    return make_matches(probe.story_id, language, detection, nominee.matches, by_passages)


async def finish_in_time(work: Awaitable[T], until: float | None, late: str) -> T:
    """The result of `work`.  Raises Transient, with the message `late`, if it is not there at a time of the loop."""
    try:
        async with asyncio.timeout_at(until):
            return await work
    except TimeoutError:
        raise Transient(late, "timeout") from None
