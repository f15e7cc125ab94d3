"""Nominates for stories that are looked up in the indexes of a ledger: by their whole texts and by passages.

`nominate` does it for some stories at once.  A run looks batches up while others are written, and so calls its parts.

Whole texts are alike if their SimHashes or signatures are.  Stories with equal fingerprints share a lookup.  An index
may lack the latest stories: those are compared one by one (`core.candidates.select`), unless the index is so far behind
that it must be repaired first.

A text that is checked is looked up within a time.  An index that does not answer, or not in time, is done without: the
answer then says so.
"""

import asyncio
import sqlite3
from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple, TypeVar

import numpy as np

from neardup.config import Detection
from neardup.core.candidates.banding import copy_keys
from neardup.core.candidates.select import MAX_UNINDEXED, NO_NUMBERS, Nominee, StoryGroup, select_matches
from neardup.core.fingerprint.word_hashes import MIN_SHARED, PassageHashes
from neardup.core.verify.alignment import NO_HASHES
from neardup.errors import Transient
from neardup.index.passages.postings import get_numbers, make_keys, select_keys
from neardup.index.protocol import Index, LookupResult, refuse_index_mismatch
from neardup.ledger import Ledger, candidates, outbox, passages, runs, transaction, versions
from neardup.ledger.candidates import Matches
from neardup.ledger.languages import count_by_language
from neardup.ledger.passages import FoundCommon
from neardup.nomination.passages import PassageMatches, PassageNomination, Passages, Probe
from neardup.records import BandedFingerprint, Language
from neardup.retry import retry_call

T = TypeVar("T")
NOTHING_FOUND = LookupResult(set(), NO_NUMBERS, {})
NominatedPair = tuple[int, int, Language]  # the ids of a story and its match, and the language of the story


class StoryProbe(NamedTuple):
    """A story or a text to look up, by its id, its fingerprint and its passage hashes, ascending."""

    story_id: int
    banded: BandedFingerprint
    passages: PassageHashes

    @property
    def of_passages(self) -> Probe:
        """What is looked up in the passage index."""
        [key] = copy_keys([self.banded.simhash], [self.banded.signature]).tolist()
        return Probe(self.story_id, self.banded.language, key, self.passages)


async def nominate(
    index: Index, by_passages: PassageNomination, ledger: Ledger, detection: Detection, probes: Sequence[StoryProbe]
) -> tuple[list[Matches], FoundCommon] | None:
    """Look up stories in both indexes; their matches, best first, and the common passages that are to be recorded.

    None if the index of fingerprints has lost its data, or is far behind the ledger.  Raises Transient if an index does
    not answer, PassagesDamaged.
    """
    stories = [(probe.story_id, probe.banded) for probe in probes]
    nominees = await look_up_and_nominate(index, ledger, detection, stories)
    if nominees is None:
        return None
    lookup = await by_passages.look_up_probes([probe.of_passages for probe in probes])
    sharing, common = await by_passages.nominate(lookup)
    whole = {nominee.story_id: nominee for nominee in nominees}
    return join_matches(stories, whole, sharing, detection), common.found


def join_matches(
    stories: Iterable[tuple[int, BandedFingerprint]],
    whole: Mapping[int, Nominee],
    by_passages: Mapping[int, PassageMatches],
    detection: Detection,
) -> list[Matches]:
    """The matches of stories by their whole texts and by passages, which are given by the ids of the stories."""
    return [
        make_matches(
            story_id, banded.language, detection, own.matches, sharing.ids, left_out=max(own.capped, sharing.capped)
        )
        for story_id, banded in stories
        for own, sharing in [(whole[story_id], by_passages[story_id])]
    ]


def group_stories(stories: Iterable[tuple[int, BandedFingerprint]]) -> list[StoryGroup]:
    """Stories, each an id and its fingerprint -> those with equal fingerprints together."""
    ids_of: dict[BandedFingerprint, list[int]] = {}
    for story_id, banded in stories:
        ids_of.setdefault(banded, []).append(story_id)
    return [(ids, banded) for banded, ids in ids_of.items()]


async def nominate_groups(
    ledger: Ledger, detection: Detection, groups: Sequence[StoryGroup], found: Sequence[LookupResult], applied: int
) -> list[Nominee] | None:
    """For each story of the groups, its matches among the stories found, those not indexed yet, and its own batch.

    `found` are the results of looking the groups up in an index that had applied the changes up to `applied`.  None if
    that index is far behind the ledger, or ahead of it.
    """
    arrays = await ledger.do(versions.read_fingerprints_for_nomination, found, applied)
    if arrays is None:
        return None
    held, unindexed = arrays
    thresholds = {banded.language: detection.of(banded.language) for _, banded in groups}
    return await asyncio.to_thread(select_matches, groups, found, held, thresholds, unindexed)


async def look_up_and_nominate(
    index: Index, ledger: Ledger, detection: Detection, stories: Sequence[tuple[int, BandedFingerprint]]
) -> list[Nominee] | None:
    """Look up stories by their whole texts, and nominate as `nominate_groups`; None as for `nominate`."""
    groups = group_stories(stories)
    applied, found = await index.look_up([banded for _, banded in groups])
    return None if applied is None else await nominate_groups(ledger, detection, groups, found, applied)


def make_matches(
    story_id: int,
    language: Language,
    detection: Detection,
    ids: Sequence[int],
    by_passages: Sequence[int] = (),
    *,
    left_out: int = 0,
) -> Matches:
    """The matches of a story, best first, with the limit of its language."""
    return Matches(story_id, ids, detection.of(language).max_matches, by_passages, left_out)


def record_pairs(
    db: sqlite3.Connection,
    pairs: Iterable[NominatedPair],
    detection: Detection,
    cut: Collection[int],
    *,
    by_passages: bool,
) -> None:
    """Record pairs, those of a story together and the best first, in one transaction.

    `by_passages` says that passages alone nominated them.  Of the stories in `cut`, other matches were left out.
    """
    with transaction(db):
        for (story_id, language), matches in groupby(pairs, itemgetter(0, 2)):
            ids = [match for _, match, _ in matches]
            whole, apart = ((), ids) if by_passages else (ids, ())
            left_out = int(story_id in cut)
            candidates.nominate(db, make_matches(story_id, language, detection, whole, apart, left_out=left_out))


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
            applied, found = await _finish_in_time(
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
            ids, common = await _finish_in_time(self._look_up_passages(probe), until, late)
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
    keys = make_keys(
        [(n, np.frombuffer(packed, np.uint32)) for n, packed in passages.list_hashes(db, seen, MAX_UNINDEXED)]
    )
    numbers, shared = np.unique(get_numbers(select_keys(keys, probe.passages)), return_counts=True)
    several = versions.read_ids(db, numbers[shared >= MIN_SHARED].tolist()).values()
    ids = [story_id for story_id in several if story_id != probe.story_id]
    by_passages = [story_id for story_id in ids[:most] if story_id not in nominee.matches]
    return make_matches(probe.story_id, language, detection, nominee.matches, by_passages)


async def _finish_in_time(work: Awaitable[T], until: float | None, late: str) -> T:
    """The result of `work`.  Raises Transient, with the message `late`, if it is not there at a time of the loop."""
    try:
        async with asyncio.timeout_at(until):
            return await work
    except TimeoutError:
        raise Transient(late, "timeout") from None
