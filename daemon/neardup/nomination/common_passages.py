"""Which passages are common: those that more than `detection.common_passage` stories hold, whatever their order was.

Copies of one story count once, or nearly so, up to MOST_COPIES: a story that a hundred accounts repeat makes nothing
common, so that its parts are found as well (`core.candidates.passage_groups`).

A common passage nominates no candidates and does not count as copied.  Its hash is recorded, once for each language of
its holders.  What is recorded follows from the stories on record alone:

- The story by which a hash becomes common records that, in the transaction that writes it.  The hash is counted in the
  index, in the batches that the lookup missed, and in the story's own batch; what the index still has of former
  versions does not count.
- In the same transaction the verified pairs among the holders become candidates again.  No other pair depends on the
  hash, see `core.verify.scores`; a pair that only common passages nominated is dropped when it is verified.
- Stories that are edited or removed are counted.  Once so many have gone that a hash may no longer be common, it is
  counted again at the end of the run.  If it is not, its holders are nominated with each other.
"""

import asyncio
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from neardup.config import Detection
from neardup.core.candidates.passage_groups import count_surplus
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.sets import are_among_ascending, find_distinct, union
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.postings import Counts
from neardup.ledger import Ledger, candidates, passages, transaction, verification, versions
from neardup.ledger.passages import NONE_FOUND, CommonPassage, FoundCommon
from neardup.records import Language

T = TypeVar("T")

MAX_HOLDERS = 5_000  # stories of a hash; what more stories hold is common without being counted
COUNTED_AT_ONCE = 500  # hashes


class Holder(NamedTuple):
    """A story that holds a hash."""

    language: Language
    copy_key: int


Holders = Mapping[int, Holder]  # of one hash, by the ids of the stories


class Passages(Protocol):
    """A passage index, and how it is asked a question; see `pipeline.passage_sync.PassageSync`."""

    @property
    def index(self) -> PassageIndex: ...
    async def ask(self, question: Callable[[], T], /) -> T: ...
    async def catch_up(self) -> None: ...


class Probe(Struct, frozen=True):
    """A story to look up: its id, its language, its copy key and its passage hashes."""

    story_id: int
    language: Language
    copy_key: int
    hashes: PassageHashes


def join_hashes(stories: Sequence[Probe]) -> tuple[npt.NDArray[np.int64], PassageHashes]:
    """The hashes of all these stories (n,), and the place of the story that each is of."""
    owners = np.repeat(np.arange(len(stories)), [len(story.hashes) for story in stories])
    return owners, np.concatenate([np.empty(0, np.uint32), *(story.hashes for story in stories)])


def leave_out(stories: Sequence[Probe], hashes: PassageHashes) -> list[Probe]:
    """The stories without these hashes, which ascend."""
    left = list(stories)
    if not len(hashes):  # of most batches
        return left
    owners, joined = join_hashes(stories)
    for place in find_distinct(owners[are_among_ascending(joined, hashes)]).tolist():
        own = stories[place].hashes
        left[place] = replace(stories[place], hashes=own[~are_among_ascending(own, hashes)])
    return left


class CommonHashes:
    """The hashes of the common passages on record, by language; read again only after a change."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._revision = 0
        self._held: dict[Language, PassageHashes] = {}  # of this revision

    async def of(self, language: Language) -> PassageHashes:
        """The hashes of a language, ascending."""
        revision = await self._ledger.do(passages.read_common_revision)
        if revision != self._revision:
            self._revision, self._held = revision, {}
        if language not in self._held:
            self._held[language] = await self._ledger.do(passages.read_common, language)
        return self._held[language]


class Common(NamedTuple):
    """The common passages that some stories hold, as ascending hashes (n,), and what is to be recorded of them."""

    hashes: PassageHashes
    found: FoundCommon


NONE_COMMON = Common(np.empty(0, np.uint32), NONE_FOUND)


async def find_common(  # noqa: PLR0917 - what a nomination has at hand
    index: Passages,
    ledger: Ledger,
    most: int,
    probes: Sequence[Probe],
    others: Sequence[Probe],
    counted: Sequence[Counts],
) -> Common:
    """The common passages that some stories hold, which too many stories hold: more than `most`.

    `counted` are the numbers of holders that the index has of the hashes of each probe; `others` are stories that it
    may lack.  A probe is counted as it is now, whatever the index and the ledger have of it.
    """
    widely_held = await asyncio.to_thread(_find_widely_held, probes, others, counted, most)
    if not len(widely_held):
        return NONE_COMMON
    gone = await ledger.do(passages.count_gone)  # before the holders are read: some may go meanwhile
    recorded = await ledger.do(passages.map_common_languages, widely_held)
    known = np.array(sorted(recorded), np.uint32)
    rows = [
        CommonPassage(language, hash_, holders=most + 1, example=story_id, due_at=gone + 1)
        for hash_, holders in _find_holders(probes, known).items()
        for language, story_id in {holder.language: story_id for story_id, holder in holders.items()}.items()
        if language not in recorded[hash_]
    ]
    unknown = widely_held[~are_among_ascending(widely_held, known)]
    held, new, affected = await read_holders(index, ledger, unknown), list[int](), set[int]()
    own_ids = {probe.story_id for probe in probes}
    for hash_, holders in _find_holders([*others, *probes], unknown).items():
        earlier = {story_id: holder for story_id, holder in held.get(hash_, {}).items() if story_id not in own_ids}
        everyone = earlier | holders
        surplus = _count_surplus(everyone, most) if hash_ in held else 1
        if surplus > 0:
            new.append(hash_)
            affected |= everyone.keys()
            rows += _make_rows(hash_, everyone, max(len(everyone), most + 1), gone + surplus)
    return Common(union(known, np.array(new, np.uint32)), FoundCommon(rows, affected))


def _find_widely_held(
    probes: Sequence[Probe], others: Sequence[Probe], counted: Sequence[Counts], most: int
) -> PassageHashes:
    """The hashes of the probes that more than `most` stories may hold: an index may count a story twice."""
    _, own = join_hashes(probes)
    everyone = np.sort(np.concatenate([own, *(other.hashes for other in others)]))
    repeated = everyone[most:][everyone[most:] == everyone[: max(len(everyone) - most, 0)]]  # by these stories alone
    if len(repeated):
        repeated = np.intersect1d(find_distinct(repeated), find_distinct(own), assume_unique=True)
    indexed = np.concatenate([np.empty(0, np.int64), *counted])
    known, numbers = own[indexed > 0], indexed[indexed > 0]
    numbers += np.searchsorted(everyone, known, "right") - np.searchsorted(everyone, known)
    return union(repeated, known[numbers > most])


def _find_holders(stories: Sequence[Probe], hashes: PassageHashes) -> dict[int, dict[int, Holder]]:
    """Ascending hashes -> which of these stories hold each that any does."""
    found = defaultdict[int, dict[int, Holder]](dict)
    owners, joined = join_hashes(stories if len(hashes) else ())
    held = are_among_ascending(joined, hashes)
    for place, hash_ in zip(owners[held].tolist(), joined[held].tolist(), strict=True):
        story = stories[place]
        found[hash_][story.story_id] = Holder(story.language, story.copy_key)
    return found


def _count_surplus(holders: Holders, most: int) -> int:
    return count_surplus(len(holders), len({holder.copy_key for holder in holders.values()}), most)


def _make_rows(hash_: int, holders: Holders, size: int, due_at: int) -> list[CommonPassage]:
    """A common passage as it is recorded, once for each language of its holders."""
    return [
        CommonPassage(language, hash_, size, min(n for n in holders if holders[n].language == language), due_at)
        for language in sorted({holder.language for holder in holders.values()})
    ]


async def read_holders(index: Passages, ledger: Ledger, hashes: PassageHashes) -> dict[int, dict[int, Holder]]:
    """Distinct ascending hashes -> the stories on record that hold each; one of more than MAX_HOLDERS is left out."""
    if not len(hashes):
        return {}
    positions, numbers, counts = await index.ask(lambda: index.index.find_postings(hashes, MAX_HOLDERS))
    stories = await ledger.do(versions.read_holders, find_distinct(numbers).tolist())
    found = {
        hash_: dict[int, Holder]()
        for hash_, count in zip(hashes.tolist(), counts.tolist(), strict=True)
        if count <= MAX_HOLDERS
    }
    for hash_, number in zip(hashes[positions].tolist(), numbers.tolist(), strict=True):
        if number in stories:
            story = stories[number]
            found[hash_][story.story_id] = Holder(story.language, story.copy_key)
    return found


async def count_again(index: Passages, ledger: Ledger, detection: Detection) -> None:
    """Count again the common passages that may no longer be common, because stories were edited or removed."""
    gone = await ledger.do(passages.count_gone)
    while len(hashes := await ledger.do(passages.list_due_for_counting, gone, COUNTED_AT_ONCE)):
        held = await read_holders(index, ledger, hashes)
        due_at = {
            hash_: gone + (_count_surplus(held[hash_], detection.common_passage) if hash_ in held else 1)
            for hash_ in hashes.tolist()
        }
        await ledger.do(_record_counts, gone, due_at, held, detection)


def _record_counts(
    db: sqlite3.Connection, gone: int, due_at: Mapping[int, int], held: Mapping[int, Holders], detection: Detection
) -> None:
    with transaction(db):
        passages.put_due(db, {hash_: due for hash_, due in due_at.items() if due > gone})
        drop_common(db, {hash_: held[hash_] for hash_, due in due_at.items() if due <= gone}, detection)


def drop_common(db: sqlite3.Connection, held: Mapping[int, Holders], detection: Detection) -> None:
    """Record that hashes are no longer common, of which these are the holders, within the caller's transaction."""
    passages.remove_common(db, held)
    languages, others_of = dict[int, Language](), defaultdict[int, set[int]](set)
    for holders in held.values():
        verification.request_verification_among(db, holders)
        for story_id, holder in holders.items():
            languages[story_id] = holder.language
            others_of[story_id].update(other for other in holders if other < story_id)
    for story_id, others in others_of.items():
        most = detection.of(languages[story_id]).max_matches
        candidates.offer(db, story_id, sorted(others), most)
