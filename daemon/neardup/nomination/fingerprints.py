"""Nominates by whole texts: the stories whose SimHashes or signatures are alike, among those that lookups find.

Stories with equal fingerprints share a lookup.  An index may lack the latest stories: those are compared one by one
(`core.candidates.select`), unless the index is so far behind that it must be repaired first.
"""

import asyncio
from collections.abc import Iterable, Sequence

from neardup.config import Detection
from neardup.core.candidates.select import Nominee, StoryGroup, nominate
from neardup.index.protocol import Index, LookupResult
from neardup.ledger import Ledger, versions
from neardup.records import BandedFingerprint


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
    arrays = await ledger.do(versions.fingerprints_for_nomination, found, applied)
    if arrays is None:
        return None
    held, unindexed = arrays
    thresholds = {banded.language: detection.of(banded.language) for _, banded in groups}
    return await asyncio.to_thread(nominate, groups, found, held, thresholds, unindexed)


async def look_up_and_nominate(
    index: Index, ledger: Ledger, detection: Detection, stories: Sequence[tuple[int, BandedFingerprint]]
) -> list[Nominee] | None:
    """Look up stories, and nominate as `nominate_groups`; None as well if the index has lost its data."""
    groups = group_stories(stories)
    applied, found = await index.lookup([banded for _, banded in groups])
    return None if applied is None else await nominate_groups(ledger, detection, groups, found, applied)
