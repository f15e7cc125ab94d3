"""Nominates by passages: for each story of a batch, or for a text, the stories that share passage hashes with it.

While one batch is written, the next ones are looked up.  A batch is therefore also compared with itself and with the
batches that were committed since its lookup began.

**Common passages** are those that more than `detection.common_passage` stories hold, whatever their order was.  Copies
of one story count once, or nearly so, up to MOST_COPIES: a story that a hundred accounts repeat makes nothing common,
so that its parts are found as well (`core.candidates.passage_groups`).  A common passage nominates no candidates and
does not count as copied.  Its hash is recorded, once for each language of its holders.  What is recorded follows from
the stories on record alone:

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
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from neardup.config import Detection
from neardup.core.candidates.banding import copy_keys
from neardup.core.candidates.passage_groups import count_surplus, find_sharing_pairs
from neardup.core.columns import Outcomes
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.sets import are_among_ascending, find_distinct, union
from neardup.index.passages.index import Found, PassageIndex
from neardup.index.passages.postings import Counts
from neardup.ledger import Ledger, candidates, passages, transaction, versions
from neardup.ledger.passages import NONE_FOUND, CommonPassage, FoundCommon
from neardup.records import Language
from neardup.telemetry.metrics import COMMON_PASSAGES, STAGE_SECONDS

T = TypeVar("T")

MAX_HOLDERS = 5_000  # stories of a hash; what more stories hold is common without being counted
COUNTED_AT_ONCE = 500  # hashes


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


Holder = versions.HolderRow | Probe  # a story that holds a hash
Holders = Mapping[int, Holder]  # of one hash, by the ids of the stories


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
        found[hash_][story.story_id] = story
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
        if story := stories.get(number):
            found[hash_][story.story_id] = story
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
    """Record that hashes are no longer common, of which these are the holders."""
    with transaction(db):
        passages.remove_common(db, held)
        languages, others_of = dict[int, Language](), defaultdict[int, set[int]](set)
        for holders in held.values():
            candidates.request_verification_among(db, holders)
            for story_id, holder in holders.items():
                languages[story_id] = holder.language
                others_of[story_id].update(other for other in holders if other < story_id)
        for story_id, others in others_of.items():
            most = detection.of(languages[story_id]).max_matches
            candidates.offer(db, story_id, sorted(others), most)


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
        listed, pages = batch.made.stories, batch.made.pages
        hashes = (np.frombuffer(hashes, np.uint32) for hashes in pages.passages)
        keys = copy_keys(pages.simhashes, pages.signatures).tolist()
        return await self.look_up_probes(list(map(Probe, listed.ids, listed.languages, keys, hashes)))

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
        numbers = find_distinct(np.concatenate([result.numbers for result in found])).tolist()
        ids = await self._ledger.do(versions.read_ids, numbers) if numbers else {}
        matches = await asyncio.to_thread(_match, apart, found, ids, apart_others, self._detection)
        return PassageNominees(matches, common)

    def note_commit(self, probes: list[Probe]) -> None:
        """Note that a batch is committed, and in the index."""
        self._recent.append(probes)
        self._batches += 1


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
