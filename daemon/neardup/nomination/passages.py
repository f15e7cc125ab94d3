"""Nominates by passages: for each story of a batch, or for a text, the stories that share passage hashes with it.

While one batch is written, the next ones are looked up.  A batch is therefore also compared with itself and with the
batches that were committed since its lookup began.

Hashes that too many stories hold are common passages: they are recorded, nominate no candidates, and do not count as
copied.  A hash becomes common when one more story comes to hold it.  Pairs that were flagged for it before are then
verified again, so the order in which stories arrive makes no difference.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from neardup.config import Detection
from neardup.core.candidates.passage_groups import sharing_pairs
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.lookup import Found
from neardup.ledger import Ledger, candidates, passages, verification, versions
from neardup.ledger.passages import CommonPassage
from neardup.nomination.matches import matches_of
from neardup.records import Language
from neardup.telemetry.metrics import COMMON_PASSAGES, STAGE_SECONDS

T = TypeVar("T")
MAX_HOLDERS = 5_000  # stories of a hash that has just become common; it was found common long before it has more
MAX_MATCHED = 20_000  # stories
RECHECKED_AT_ONCE = 500  # stories


class Passages(Protocol):
    """A passage index, and how it is asked a question; see `pipeline.passage_sync.PassageSync`."""

    @property
    def index(self) -> PassageIndex: ...
    async def ask(self, question: Callable[[], T], /) -> T: ...
    async def catch_up(self) -> None: ...


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

    def __init__(self, passages: Passages, ledger: Ledger) -> None:
        self._passages = passages
        self._ledger = ledger
        self._holders: dict[Language, dict[int, int]] = {}  # by hash
        self._unwritten: dict[tuple[Language, int], CommonPassage] = {}

    async def record(self, probes: Sequence[Probe], found: Sequence[Found]) -> None:
        """Record the common passages that lookups found, and verify again what was flagged for new ones.

        That more stories hold a known one is written with the next new one, or by `write`.
        """
        new = set[int]()
        for probe, result in zip(probes, found, strict=True):
            if not len(result.common):
                continue
            known = await self._known_holders(probe.language)
            COMMON_PASSAGES.labels(probe.language).inc(len(result.common))
            for hash_, holders in zip(result.common.tolist(), result.holders.tolist(), strict=True):
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

    async def _known_holders(self, language: Language) -> dict[int, int]:
        if language not in self._holders:
            self._holders[language] = await self._ledger.do(passages.common_holders, language)
        return self._holders[language]


@dataclass(frozen=True, slots=True)
class PassageLookup:
    """The results of looking up a batch in an index that held the first `batches` batches of the run, or more."""

    probes: list[Probe]
    found: list[Found]
    batches: int


@dataclass(frozen=True, slots=True)
class PassageMatches:
    """The ids of the stories that share passages with a story, best first; `capped` is the number left out."""

    ids: tuple[int, ...] = ()
    capped: int = 0


class PassageNomination:
    """Looks up and nominates the batches of one run, in their order, or single texts.

    Without `common` the common passages that it finds are not recorded.  A lookup that lacks more than the
    `most_recent` batches is repeated.
    """

    def __init__(
        self,
        passages: Passages,
        ledger: Ledger,
        detection: Detection,
        common: CommonPassages | None = None,
        *,
        most_recent: int = 0,
    ) -> None:
        self._passages = passages
        self._ledger = ledger
        self._detection = detection
        self._batches = 0  # committed so far, and in the index
        self._recent: deque[list[Probe]] = deque(maxlen=most_recent)  # the last of these
        self._common = common
        self._matched: list[Probe] = []  # stories with matches, whose passages may have become common since
        self._capped: set[int] = set()  # the ids of those with more than max_matches

    async def look_up(self, batch: Outcomes) -> PassageLookup:
        """Look up the stories of a batch that were fingerprinted."""
        return await self.look_up_probes(probes_of(batch))

    async def look_up_probes(self, probes: list[Probe]) -> PassageLookup:
        """Look up stories or texts.  Raises PassagesDamaged if a segment cannot be read."""
        batches = self._batches
        hashes = [probe.hashes for probe in probes]
        with STAGE_SECONDS.labels("look_up_passages").time():
            index, common = self._passages.index, self._detection.common_passage
            found = await self._passages.ask(lambda: index.lookup(hashes, common))
        return PassageLookup(probes, found, batches)

    async def nominate(self, lookup: PassageLookup) -> dict[int, PassageMatches]:
        """For each story looked up, its matches among the stories found, the latest batches and its own batch."""
        if self._batches - lookup.batches > len(self._recent):
            lookup = await self.look_up_probes(lookup.probes)
        with STAGE_SECONDS.labels("nominate").time():
            if self._common is not None:
                await self._common.record(lookup.probes, lookup.found)
            latest = list(self._recent)[len(self._recent) - (self._batches - lookup.batches) :]
            matches = await self._matches(lookup, latest)
        if self._common is not None:
            if len(self._matched) > MAX_MATCHED:
                await self.recheck(self._common)
            self._matched += [probe for probe in lookup.probes if matches[probe.story_id].ids]
            self._capped |= {probe.story_id for probe in lookup.probes if matches[probe.story_id].capped}
        return matches

    async def _matches(self, lookup: PassageLookup, latest: Sequence[list[Probe]]) -> dict[int, PassageMatches]:
        numbers = _numbers(lookup.found)
        ids = await self._ledger.do(versions.ids_of, numbers) if numbers else {}
        return await asyncio.to_thread(_nominate, lookup, ids, latest, self._detection)

    def note_commit(self, probes: list[Probe]) -> None:
        """Note that a batch is committed, and in the index."""
        self._recent.append(probes)
        self._batches += 1

    async def recheck(self, common: CommonPassages) -> None:
        """Look up the stories with matches once more: a passage of theirs may have become common after their lookup.

        Matches by such a passage may have displaced others, so a story that had too many is nominated again.
        """
        (matched, self._matched), (capped, self._capped) = (self._matched, []), (self._capped, set())
        for start in range(0, len(matched), RECHECKED_AT_ONCE):
            lookup = await self.look_up_probes(matched[start : start + RECHECKED_AT_ONCE])
            await common.record(lookup.probes, lookup.found)
            again = [
                (replace(probe, hashes=np.setdiff1d(probe.hashes, found.common)), found)
                for probe, found in zip(lookup.probes, lookup.found, strict=True)
                if probe.story_id in capped and len(found.common)
            ]
            if again:
                await self._nominate_again([probe for probe, _ in again], [found for _, found in again])

    async def _nominate_again(self, probes: list[Probe], found: list[Found]) -> None:
        matches = await self._matches(PassageLookup(probes, found, self._batches), [])
        nominated = [
            matches_of(probe.story_id, probe.language, self._detection, (), matches[probe.story_id].ids)
            for probe in probes
        ]
        await self._ledger.do(candidates.nominate_all, nominated)


def probes_of(batch: Outcomes) -> list[Probe]:
    """The stories of a batch that were fingerprinted."""
    listed = batch.made.stories
    hashes = (np.frombuffer(hashes, np.uint32) for hashes in batch.made.pages.passages)
    return list(map(Probe, listed.ids, listed.languages, hashes))


def _numbers(found: Sequence[Found]) -> list[int]:
    return list(np.unique(np.concatenate([np.empty(0, np.uint32), *(result.numbers for result in found)])).tolist())


def _nominate(
    lookup: PassageLookup,
    ids: Mapping[int, int],
    latest: Sequence[list[Probe]],
    detection: Detection,
) -> dict[int, PassageMatches]:
    """`ids` maps the story numbers that were found to ids; `latest` are the batches not looked up."""
    probes, others = lookup.probes, [probe for batch in latest for probe in batch]
    scores: list[dict[int, int]] = [{} for _ in probes]  # of each match, by id: how many hashes are shared
    for probe, found, score in zip(probes, lookup.found, scores, strict=True):
        for number, shared in zip(found.numbers.tolist(), found.shared.tolist(), strict=True):
            score[ids.get(number, probe.story_id)] = shared
    everyone = [*probes, *others]
    pairs = sharing_pairs([probe.hashes for probe in everyone], detection.common_passage)
    for left, right, shared in zip(*(column.tolist() for column in pairs), strict=True):
        for place, other in ((left, right), (right, left)):
            if place < len(probes):
                score, story_id = scores[place], everyone[other].story_id
                score[story_id] = max(shared, score.get(story_id, 0))
    return {
        probe.story_id: _best(probe, score, detection.of(probe.language).max_matches)
        for probe, score in zip(probes, scores, strict=True)
    }


def _best(probe: Probe, score: dict[int, int], most: int) -> PassageMatches:
    """The matches that share the most hashes, then have the lowest ids."""
    score.pop(probe.story_id, None)
    ranked = sorted(score, key=lambda story_id: (-score[story_id], story_id))
    return PassageMatches(tuple(ranked[:most]), len(ranked[most:]))
