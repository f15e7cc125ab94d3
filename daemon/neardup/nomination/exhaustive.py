"""Nominates by reading everything: all fingerprints, and all passage hashes, without an index of whole texts.

It is wider than a lookup, and takes minutes for a large ledger, so it is for audits: lookups should have found what it
finds.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping

import numpy as np
from msgspec import Struct, field

from neardup.config import Detection
from neardup.core.candidates.banding import FingerprintArrays
from neardup.core.candidates.passage_groups import MOST_COPIES
from neardup.core.candidates.select import compare
from neardup.core.fingerprint.word_hashes import MIN_SHARED, PassageHashes
from neardup.core.sets import are_among_ascending, find_distinct
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.postings import HASH_SHIFT, NO_KEYS, Keys, get_numbers, make_keys, select_keys
from neardup.ledger import Ledger, versions
from neardup.ledger.passages import list_hashes, read_all_common

STORIES_PER_READ = 2_000  # larger pages do not fit in the processor's cache
MOST = 100  # pairs of a story, the best first, by either fingerprints or passages


class WideMatches(Struct):
    """What was compared with a story: ids -> the rows that agree, and the uncommon and all passage hashes shared.

    `left_out` counts the pairs above MOST.
    """

    rows: dict[int, int] = field(default_factory=dict)
    uncommon: dict[int, int] = field(default_factory=dict)
    shared: dict[int, int] = field(default_factory=dict)
    left_out: int = 0

    def ids(self) -> set[int]:
        """All that was nominated."""
        return self.rows.keys() | self.shared.keys()


async def match_fingerprints(
    ledger: Ledger, stories: FingerprintArrays, detection: Detection, found: Mapping[int, WideMatches]
) -> int:
    """Compare some stories with all of their languages; returns the number of stories that were read."""
    of_language = dict(stories.by_language())
    number = read = 0
    while len(page := await ledger.do(versions.list_fingerprints_after, number, STORIES_PER_READ)):
        number, read = int(page.numbers[-1]), read + len(page)
        for language, others in page.by_language():
            if (own := of_language.get(language)) is not None:
                _add_alike(own, others, detection.of(language).hamming, found)
    for nominated in found.values():
        nominated.left_out += _keep_best(nominated.rows)
    return read


def _add_alike(
    stories: FingerprintArrays, others: FingerprintArrays, hamming: int, found: Mapping[int, WideMatches]
) -> None:
    alike = compare(stories, others, hamming)
    ids, matched = stories.ids[alike.stories].tolist(), others.ids[alike.others].tolist()
    for story_id, match, rows in zip(ids, matched, alike.rows.tolist(), strict=True):
        if story_id != match:
            found[story_id].rows[match] = rows


def _keep_best(scores: dict[int, int]) -> int:
    """Keep the MOST highest; returns how many were dropped."""
    dropped = sorted(scores, key=lambda story_id: (-scores[story_id], story_id))[MOST:]
    for story_id in dropped:
        del scores[story_id]
    return len(dropped)


async def match_passages(
    ledger: Ledger,
    passages: PassageIndex,
    hashes: Mapping[int, PassageHashes],
    common: int,
    found: Mapping[int, WideMatches],
) -> None:
    """Find the stories that share passage hashes with some stories, given by their ids."""
    wanted = find_distinct(np.concatenate([np.empty(0, np.uint32), *hashes.values()]))
    keys = [part async for part in _read_postings(ledger, passages, wanted)]
    postings = find_distinct(np.concatenate([NO_KEYS, *keys]))  # a story may be in a segment and still in the ledger
    starts = np.searchsorted(postings, wanted.astype(np.uint64) << HASH_SHIFT)
    ends = np.append(starts[1:], len(postings))
    numbers, most = get_numbers(postings), max(common, MOST_COPIES)
    is_common = are_among_ascending(wanted, await ledger.do(read_all_common))
    for story_id, own in hashes.items():
        shared, uncommon = defaultdict[int, int](int), defaultdict[int, int](int)
        for place in np.searchsorted(wanted, own).tolist():
            holders = int(ends[place] - starts[place])
            for number in numbers[starts[place] : ends[place]].tolist() if holders <= most else ():
                shared[number] += 1
                uncommon[number] += not is_common[place]
        several = [number for number, n in shared.items() if n >= MIN_SHARED]
        ids = await ledger.do(versions.read_ids, several)
        nominated = found[story_id]
        nominated.shared = {ids[n]: shared[n] for n in several if ids.get(n, story_id) != story_id}
        nominated.uncommon = {ids[n]: uncommon[n] for n in several if n in ids}
        nominated.left_out += _keep_best(nominated.shared)


async def _read_postings(ledger: Ledger, passages: PassageIndex, wanted: PassageHashes) -> AsyncIterator[Keys]:
    """The postings of the wanted hashes: in the ledger, which has those of the latest stories, and in the segments."""
    number = 0
    while rows := await ledger.do(list_hashes, number, STORIES_PER_READ):
        number = rows[-1][0]
        yield select_keys(make_keys([(number, np.frombuffer(packed, np.uint32)) for number, packed in rows]), wanted)
    scanned = passages.scan(wanted)
    while (keys := await asyncio.to_thread(next, scanned, None)) is not None:
        yield keys
