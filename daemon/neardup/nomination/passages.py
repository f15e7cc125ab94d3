"""Nominates by passages: for each story of a batch, or for a text, the stories that share passage hashes with it.

While one batch is written, the next ones are looked up.  A batch is therefore also compared with itself and with the
batches that were committed since its lookup began.  Common passages nominate none, see
neardup.nomination.common_passages.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from neardup.config import Detection
from neardup.core.candidates.banding import copy_keys
from neardup.core.candidates.passage_groups import find_sharing_pairs
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.sets import are_among_ascending, find_distinct
from neardup.index.passages.index import Found
from neardup.ledger import Ledger, versions
from neardup.nomination.common_passages import (
    MAX_HOLDERS,
    NONE_COMMON,
    Common,
    Passages,
    Probe,
    find_common,
    join_hashes,
    leave_out,
)
from neardup.telemetry.metrics import COMMON_PASSAGES, STAGE_SECONDS


class PassageLookup(Struct, frozen=True):
    """The results of looking up a batch in an index that held the first `batches` batches of the run, or more."""

    probes: list[Probe]
    found: list[Found]
    batches: int


class PassageMatches(Struct, frozen=True):
    """The ids of the stories that share passages with a story, and how many were left out; see `select.Nominee`."""

    ids: tuple[int, ...] = ()
    capped: int = 0


class PassageNominees(NamedTuple):
    """The matches of stories, by their ids, and the common passages that they hold."""

    matches: Mapping[int, PassageMatches]
    common: Common


class PassageNomination:
    """Looks up and nominates the batches of one run, in their order, or single texts.

    A lookup that lacks more than the `most_recent` batches is repeated.
    """

    def __init__(self, passages: Passages, ledger: Ledger, detection: Detection, *, most_recent: int = 0) -> None:
        self._passages = passages
        self._ledger = ledger
        self._detection = detection
        self._batches = 0  # committed so far, and in the index
        self._recent: deque[list[Probe]] = deque(maxlen=most_recent)  # the last of these

    async def look_up(self, batch: Outcomes) -> PassageLookup:
        """Look up the stories of a batch that were fingerprinted."""
        return await self.look_up_probes(list_probes(batch))

    async def look_up_probes(self, probes: list[Probe]) -> PassageLookup:
        """Look up stories or texts.  Raises PassagesDamaged if a segment cannot be read."""
        batches = self._batches
        with STAGE_SECONDS.labels("look_up_passages").time():
            found = await self._look_up([probe.hashes for probe in probes], self._detection.common_passage)
        return PassageLookup(probes, found, batches)

    async def _look_up(self, hashes: Sequence[PassageHashes], most: int) -> list[Found]:
        index = self._passages.index
        return await self._passages.ask(lambda: index.look_up(hashes, most))

    async def nominate(self, lookup: PassageLookup) -> PassageNominees:
        """For each story looked up, its matches among the stories found, the latest batches and its own batch."""
        if self._batches - lookup.batches > len(self._recent):
            lookup = await self.look_up_probes(lookup.probes)
        with STAGE_SECONDS.labels("nominate").time():
            latest = list(self._recent)[len(self._recent) - (self._batches - lookup.batches) :]
            return await self._nominate(lookup.probes, lookup.found, [probe for batch in latest for probe in batch])

    async def _nominate(self, probes: list[Probe], found: Sequence[Found], others: Sequence[Probe]) -> PassageNominees:
        """`others` are stories that the lookups may have missed."""
        if not probes:
            return PassageNominees({}, NONE_COMMON)
        most, counted = self._detection.common_passage, [result.holders for result in found]
        common = await find_common(self._passages, self._ledger, most, probes, others, counted)
        owners, hashes = join_hashes(probes)
        is_common = are_among_ascending(hashes, common.hashes)
        for n, number in Counter(owners[is_common].tolist()).items():
            COMMON_PASSAGES.labels(probes[n].language).inc(number)
        apart, apart_others = (leave_out(stories, common.hashes) for stories in (probes, others))
        found = list(found)
        # a lookup went by the number of holders in the index, which counts former versions and lacks the latest stories
        wrong = find_distinct(owners[is_common != (np.concatenate(counted) > most)]).tolist()
        if wrong:
            looked_up = await self._look_up([apart[n].hashes for n in wrong], MAX_HOLDERS)
            for n, result in zip(wrong, looked_up, strict=True):
                found[n] = result
        numbers = _list_numbers(found)
        ids = await self._ledger.do(versions.read_ids, numbers) if numbers else {}
        matches = await asyncio.to_thread(_match, apart, found, ids, apart_others, self._detection)
        return PassageNominees(matches, common)

    def note_commit(self, probes: list[Probe]) -> None:
        """Note that a batch is committed, and in the index."""
        self._recent.append(probes)
        self._batches += 1


def list_probes(batch: Outcomes) -> list[Probe]:
    """The stories of a batch that were fingerprinted."""
    listed = batch.made.stories
    pages = batch.made.pages
    hashes = (np.frombuffer(hashes, np.uint32) for hashes in pages.passages)
    keys = copy_keys(pages.simhashes, pages.signatures).tolist()
    return list(map(Probe, listed.ids, listed.languages, keys, hashes))


def _list_numbers(found: Sequence[Found]) -> list[int]:
    return list(find_distinct(np.concatenate([np.empty(0, np.uint32), *(result.numbers for result in found)])).tolist())


def _match(
    probes: Sequence[Probe],
    looked_up: Sequence[Found],
    ids: Mapping[int, int],
    others: Sequence[Probe],
    detection: Detection,
) -> dict[int, PassageMatches]:
    """`ids` maps the story numbers that were found to ids; `others` were not looked up."""
    scores: list[dict[int, int]] = [{} for _ in probes]  # of each match, by id: how many hashes are shared
    everyone = [*probes, *others]
    replaced = {story.story_id for story in everyone}  # of which the index has a former version, if any
    for found, score in zip(looked_up, scores, strict=True):
        for number, shared in zip(found.numbers.tolist(), found.shared.tolist(), strict=True):
            if (story_id := ids.get(number)) is not None and story_id not in replaced:
                score[story_id] = shared
    pairs = find_sharing_pairs([story.hashes for story in everyone])
    for left, right, shared in zip(*(column.tolist() for column in pairs), strict=True):
        for place, other in ((left, right), (right, left)):
            if place < len(probes):
                score, story_id = scores[place], everyone[other].story_id
                score[story_id] = max(shared, score.get(story_id, 0))
    own_ids = {probe.story_id for probe in probes}
    return {
        probe.story_id: _choose_best(probe, score, own_ids, detection.of(probe.language).max_matches)
        for probe, score in zip(probes, scores, strict=True)
    }


def _choose_best(probe: Probe, score: dict[int, int], batch: Collection[int], most: int) -> PassageMatches:
    """The matches that share the most hashes, then have the lowest ids: `most` with lower ids, and those outside."""
    ranked = sorted(score, key=lambda story_id: (-score[story_id], story_id))
    earlier = [story_id for story_id in ranked if story_id < probe.story_id]
    later = [story_id for story_id in ranked if story_id > probe.story_id and story_id not in batch]
    return PassageMatches((*earlier[:most], *later), len(earlier[most:]))
