"""Looks up submitted stories once more, in indexes that are in step with the ledger.

A run and a submission write at the same time, and neither sees what the other is about to write.  The second lookup
finds these pairs, and the passages that have become common by a submission.
"""

import asyncio
from collections.abc import Sequence

import numpy as np

from neardup.config import Detection
from neardup.core.candidates.select import Nominee, StoryGroup, nominate
from neardup.index.protocol import Index
from neardup.ledger import Ledger, submissions, versions
from neardup.ledger.candidates import Matches
from neardup.ledger.submissions import Unsettled
from neardup.pipeline.common_passages import CommonPassages, Probe
from neardup.pipeline.passage_nomination import PassageNomination
from neardup.pipeline.passage_sync import PassageSync
from neardup.records import BandedFingerprint

STORIES_PER_LOOKUP = 256


async def settle_all(index: Index, passages: PassageSync, ledger: Ledger, detection: Detection) -> None:
    """Call `settle` until all are settled."""
    while await settle(index, passages, ledger, detection):
        pass


async def settle(index: Index, passages: PassageSync, ledger: Ledger, detection: Detection) -> list[int]:
    """Look up the next unsettled stories, and record their candidates; returns their ids.

    Returns none once all are settled, or if the index has lost data: the next run repairs it.  Raises Transient if an
    index does not answer, PassagesDamaged.
    """
    some = await ledger.do(submissions.list_unsettled, STORIES_PER_LOOKUP)
    if not some:
        return []
    nominees = await nominees_of(index, ledger, detection, [(one.story_id, one.banded) for one in some])
    if nominees is None:
        return []
    nomination = PassageNomination(passages, ledger, detection, CommonPassages(passages, ledger))
    by_passages = await nomination.nominate(await nomination.look_up_probes(_probes(some)))
    whole = {one.story_id: one.matches for one in nominees}
    matches = [
        Matches(
            one.story_id,
            whole[one.story_id],
            detection.of(one.banded.language).max_matches,
            by_passages[one.story_id].ids,
        )
        for one in some
    ]
    await ledger.do(submissions.settle, some, matches)
    return [one.story_id for one in some]


async def nominees_of(
    index: Index, ledger: Ledger, detection: Detection, stories: Sequence[tuple[int, BandedFingerprint]]
) -> list[Nominee] | None:
    """Look up stories that the index holds; None if the index has lost data or is far behind the ledger."""
    ids_of: dict[BandedFingerprint, list[int]] = {}
    for story_id, banded in stories:
        ids_of.setdefault(banded, []).append(story_id)
    groups: list[StoryGroup] = [(ids, banded) for banded, ids in ids_of.items()]
    applied, found = await index.lookup(list(ids_of))
    arrays = None if applied is None else await ledger.do(versions.fingerprints_for_nomination, found, applied)
    if arrays is None:
        return None
    held, unindexed = arrays
    thresholds = {banded.language: detection.of(banded.language) for banded in ids_of}
    return await asyncio.to_thread(nominate, groups, found, held, thresholds, unindexed)


def _probes(some: Sequence[Unsettled]) -> list[Probe]:
    return [Probe(one.story_id, one.banded.language, np.frombuffer(one.passages, np.uint32)) for one in some]
