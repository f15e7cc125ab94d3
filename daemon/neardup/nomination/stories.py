"""Nominates for stories that are looked up in the indexes of a ledger: by their whole texts and by passages.

`nominate` does it for some stories at once.  A run looks batches up while others are written, and so calls its parts.

Whole texts are alike if their SimHashes or signatures are.  Stories with equal fingerprints share a lookup.  An index
may lack the latest stories: those are compared one by one (`core.candidates.select`), unless the index is so far behind
that it must be repaired first.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from neardup.config import Detection
from neardup.core.candidates.banding import copy_keys
from neardup.core.candidates.select import Nominee, StoryGroup, select_matches
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.index.protocol import Index, LookupResult
from neardup.ledger import Ledger, versions
from neardup.ledger.candidates import Matches
from neardup.ledger.passages import FoundCommon
from neardup.nomination.common_passages import Probe
from neardup.nomination.matches import make_matches
from neardup.nomination.passages import PassageMatches, PassageNomination
from neardup.records import BandedFingerprint


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
    index: Index, passages: PassageNomination, ledger: Ledger, detection: Detection, probes: Sequence[StoryProbe]
) -> tuple[list[Matches], FoundCommon] | None:
    """Look up stories in both indexes; their matches, best first, and the common passages that are to be recorded.

    None if the index of fingerprints has lost its data, or is far behind the ledger.  Raises Transient if an index does
    not answer, PassagesDamaged.
    """
    stories = [(probe.story_id, probe.banded) for probe in probes]
    nominees = await look_up_and_nominate(index, ledger, detection, stories)
    if nominees is None:
        return None
    lookup = await passages.look_up_probes([probe.of_passages for probe in probes])
    by_passages, common = await passages.nominate(lookup)
    whole = {nominee.story_id: nominee for nominee in nominees}
    return join_matches(stories, whole, by_passages, detection), common.found


def join_matches(
    stories: Iterable[tuple[int, BandedFingerprint]],
    whole: Mapping[int, Nominee],
    by_passages: Mapping[int, PassageMatches],
    detection: Detection,
) -> list[Matches]:
    """The matches of stories by their whole texts and by passages, which are given by the ids of the stories."""
    return [
        make_matches(
            story_id, banded.language, detection, own.matches, passages.ids, left_out=max(own.capped, passages.capped)
        )
        for story_id, banded in stories
        for own, passages in [(whole[story_id], by_passages[story_id])]
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
