"""The search for translated and retold copies among the stories that have vectors.

The codes nominate the nearest stories in each language, in one scan of all.  The stories are then compared with these
candidates by the vectors of their chunks: how alike they are, and each story's background, which is how alike it is to
its nearest others.  The margin decides (see neardup.meaning.margins).

The pairs of a batch are on record in the ledger before its stories count as searched, so that a run that ends anywhere
finds the same pairs again.
"""

import asyncio
import json
import os
import sqlite3
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from neardup.config import Config, Detection
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.sets import find_distinct
from neardup.core.verify.scores import ComparedPair, assess_all
from neardup.core.verify.tiers import RETOLD, TRANSLATED
from neardup.ledger import Ledger, candidates, meaning_flags, transaction
from neardup.ledger.meaning_flags import MeaningFlag
from neardup.meaning import margins, vectors
from neardup.meaning.codes import Codes, Nearest, Places, Vectors, restore, scale_to_unit
from neardup.meaning.margins import NEIGHBOURS, UNFITTED, ExtremeValues, measure_background, pair_chunks
from neardup.meaning.vectors import BUSY_SECONDS, OF_IDS, STORED, Parts, check_chunks, read_centring, read_dimensions
from neardup.nomination.passages import CommonHashes
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.text_cache import Texts
from neardup.records import Kind, Language

BATCH_STORIES = 10_000  # searched for in one pass over the codes
STORIES_AT_ONCE = 500  # whose candidates' backgrounds are in memory together, about 45 MB
PAIRS_AT_ONCE = 250  # whose texts are in memory together
NOMINATED = 8  # candidates of a story in its language; one more in each other one
CODES_AT_ONCE = 20_000  # about 1 MB
SAME_TEXT = 0.9  # cosine of the vectors of two stories: candidates as alike as this are copies of each other
COMPARED_AT_ONCE = 20  # whose candidates' vectors are in memory together, about 8 MB: more leave the nearest caches
READERS = 8  # threads that read ahead: side by side, reads from a disk take a third of the time
PARTS_AHEAD = 16  # each of so many stories; their pages of the file are about 100 MB

Margins = dict[tuple[int, int], float]  # of pairs, the lower id first


class SearchSummary(Struct):
    """Of how many stories copies were searched for, the new pairs by kind, and those that are copies by their words."""

    searched: int = 0
    found: dict[Kind, int] = field(default_factory=lambda: {TRANSLATED: 0, RETOLD: 0})
    copies: int = 0


class CentredStory(NamedTuple):
    """A story that has vectors: its language and its centred chunks, (chunks, dimensions)."""

    language: Language
    chunks: Vectors


class Compared(NamedTuple):
    """A story beside its candidates: how alike they are, by language, and its background in each language."""

    language: Language
    similarities: dict[Language, dict[int, float]]
    backgrounds: dict[Language, float]


class Searched(NamedTuple):
    """A story that was searched for, its backgrounds and the widest margin of its pairs of each kind."""

    story_id: int
    backgrounds: Mapping[Language, float]
    widest: Mapping[Kind, float]


async def search(config: Config, parts: Parts, readers: ReaderPool, stop: asyncio.Event) -> SearchSummary:
    """Search for copies of the stories whose vectors are new, until done or `stop` is set.  Raises Fatal."""
    summary, texts = SearchSummary(), Texts(readers.read_to_compare)
    least = margins.find_thresholds(await parts.vectors.do(read_distributions), parts.section.false_alarms)
    with closing(Ledger(config.ledger.path)) as ledger:
        while not stop.is_set() and (ids := await parts.vectors.do(read_unsearched, BATCH_STORIES)):
            found, searched = await _find_margins(parts, ledger, ids, least)
            margin_of = dict(sorted(found.items()))
            others = await _leave_out_copies(ledger, config.detection, texts, list(margin_of))
            summary.copies += len(margin_of) - len(others)
            flags = await _make_flags(parts, {pair: margin_of[pair] for pair in others})
            put = partial(meaning_flags.put, same_author=config.detection.same_author == "keep")
            for kind, new in (await ledger.do(put, flags, parts.embedder.model)).items():
                summary.found[kind] += new
            await parts.vectors.do(put_searched, searched)
            summary.searched += len(ids)
    return summary


async def _find_margins(
    parts: Parts, ledger: Ledger, ids: Sequence[int], least: Mapping[Kind, float]
) -> tuple[Margins, list[Searched]]:
    """The margins of the pairs of these stories that no flag has, and what the file keeps of each story.

    The margins are those from `least` on, the threshold of the kind.
    """
    nominated = await parts.vectors.do(nominate, ids)
    compared = await parts.vectors.do(compare_all, nominated)
    flagged = await ledger.do(meaning_flags.find_flagged_by_words, nominated)
    found, searched = Margins(), list[Searched]()
    for at in range(0, len(ids), STORIES_AT_ONCE):
        part = {story: compared[story] for story in ids[at : at + STORIES_AT_ONCE]}
        others = {other for story in part for other in nominated[story]}
        known = await parts.vectors.do(read_backgrounds, others - compared.keys())
        known |= {other: compared[other].backgrounds for other in others & compared.keys()}
        more, done = await asyncio.to_thread(_measure_margins, part, flagged, known, least)
        found |= more
        searched += done
    return found, searched


def _measure_margins(
    compared: Mapping[int, Compared],
    flagged: set[tuple[int, int]],
    known: Mapping[int, Mapping[Language, float]],
    least: Mapping[Kind, float],
) -> tuple[Margins, list[Searched]]:
    found, searched = Margins(), list[Searched]()
    for story, (language, similarities, backgrounds) in compared.items():
        widest = dict[Kind, float]()
        for other_language, similarity_of in similarities.items():
            kind, own = margins.choose_kind(language, other_language), backgrounds[other_language]
            for other, similarity in similarity_of.items():
                pair = min(story, other), max(story, other)
                if pair[1] < 0 or pair in flagged:  # works of the reference are not compared with each other
                    continue
                margin = margins.compute_margin(similarity, own, known.get(other, {}).get(language, own))
                widest[kind] = max(margin, widest.get(kind, margin))
                if margin >= least[kind]:
                    found[pair] = margin
        searched.append(Searched(story, backgrounds, widest))
    return found, searched


async def _leave_out_copies(
    ledger: Ledger, detection: Detection, texts: Texts, pairs: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The pairs that are no copies by their words; those that a limit kept from nomination are verified here, too."""
    kept, common_hashes = list[tuple[int, int]](), CommonHashes(ledger)
    for at in range(0, len(pairs), PAIRS_AT_ONCE):
        part = await ledger.do(candidates.read_candidates, pairs[at : at + PAIRS_AT_ONCE])
        compared, _ = await texts.read_pairs(part)
        common = {language: await common_hashes.of(language) for language in {pair.language for pair in part}}
        kept += await asyncio.to_thread(_find_not_copied, compared, detection, common)
    return kept


def _find_not_copied(
    pairs: Sequence[ComparedPair], detection: Detection, common: Mapping[Language, PassageHashes]
) -> list[tuple[int, int]]:
    assessed = assess_all(pairs, detection.of, common.__getitem__)
    return [
        (pair.a.id, pair.b.id)
        for (pair, *_), assessment in zip(pairs, assessed, strict=True)
        if assessment is None or assessment.kind is None
    ]


async def _make_flags(parts: Parts, margin_of: Margins) -> list[MeaningFlag]:
    """The pairs as the ledger keeps them."""
    ids = {story for pair in margin_of for story in pair}
    held = await parts.vectors.do(vectors.read_held, ids)
    chunks = await parts.vectors.do(read_centred, ids)
    flags = list[MeaningFlag]()
    for (a, b), margin in margin_of.items():
        (language, text_hash), (other_language, other_hash) = held[a], held[b]
        kind = margins.choose_kind(language, other_language)
        aligned = pair_chunks(chunks[a].chunks, chunks[b].chunks)
        flags.append(MeaningFlag(a, b, kind, round(margin, 4), aligned, text_hash, other_hash))
    return flags


def read_unsearched(db: sqlite3.Connection, limit: int) -> list[int]:
    """The next stories to search for; those whose code is missing wait for it."""
    rows = db.execute(
        "SELECT story_id FROM codes WHERE backgrounds IS NULL AND code IS NOT NULL ORDER BY story_id LIMIT ?", (limit,)
    )
    return [story_id for (story_id,) in rows]


def nominate(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, list[int]]:
    """The stories of the codes nearest to that of each of these: NOMINATED in its language, one more in others."""
    rows = db.execute(f"SELECT story_id, code FROM codes WHERE {OF_IDS}", (json.dumps(list(ids)),)).fetchall()
    story_ids, codes = zip(*rows, strict=True)
    found = find_nearest(db, _unpack_codes(codes))
    return {
        story_id: [other for other in nearest if other != story_id]
        for story_id, nearest in zip(story_ids, found, strict=True)
    }


def find_nearest(db: sqlite3.Connection, queries: Codes) -> list[list[int]]:
    """The stories of the nearest codes to each query (n, words): in each language NOMINATED, and one more.

    The one more is for a story on record, which is its own nearest.
    """
    cores = len(os.sched_getaffinity(0))
    parts = np.array_split(queries, cores)
    scans = defaultdict[Language, list[Nearest]](lambda: [Nearest(part, NOMINATED + 1) for part in parts])
    scanned = defaultdict[Language, list[Places]](list)
    scanning = list[Future[None]]()
    with ThreadPoolExecutor(cores) as pool:
        for languages, ids, codes in _read_codes(db):  # these are read while the last ones are scanned
            _finish(scanning)
            for language in find_distinct(languages):
                chosen = languages == language
                scanning += [pool.submit(part.scan, codes[chosen]) for part in scans[language]]
                scanned[language].append(ids[chosen])
        _finish(scanning)
    found: list[list[int]] = [[] for _ in queries]
    for language, nearest in scans.items():
        id_of = np.concatenate(scanned[language])
        for of_query, places in zip(found, np.concatenate([part.places for part in nearest]), strict=True):
            of_query.extend(id_of[places[places >= 0]].tolist())
    return found


def _finish(scanning: list[Future[None]]) -> None:
    """Wait for scans; raises what one of them raised."""
    for future in scanning:
        future.result()
    scanning.clear()


def _read_codes(db: sqlite3.Connection) -> Iterator[tuple[npt.NDArray[np.str_], Places, Codes]]:
    """Languages, ids and codes, some at a time, in the order of the ids."""
    cursor = db.execute("SELECT language, story_id, code FROM codes WHERE code IS NOT NULL ORDER BY story_id")
    while rows := cursor.fetchmany(CODES_AT_ONCE):
        languages, ids, codes = zip(*rows, strict=True)
        yield np.array(languages), np.array(ids, np.int64), _unpack_codes(codes)


def _unpack_codes(codes: Sequence[bytes]) -> Codes:
    """Stored codes as an array: (n, words)."""
    return np.frombuffer(b"".join(codes), np.uint64).reshape(len(codes), -1)


def read_centred(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, CentredStory]:
    """These stories with their vectors, by id."""
    size, by = read_dimensions(db), read_centring(db)
    rows = db.execute(
        f"SELECT language, {STORED} FROM vectors JOIN codes USING (story_id) WHERE {OF_IDS}", (json.dumps(list(ids)),)
    )
    by_language = defaultdict[Language, list[tuple[int, bytes]]](list)
    for language, story_id, *stored in rows:
        by_language[language].append((story_id, check_chunks(story_id, *stored)))
    found = dict[int, CentredStory]()
    for language, stored_stories in by_language.items():
        stories, stored = zip(*stored_stories, strict=True)
        vectors = by.apply(restore(np.frombuffer(b"".join(stored), np.int8).reshape(-1, size)), language)
        ends = np.cumsum([len(chunks) // size for chunks in stored])
        parts = np.split(vectors, ends[:-1])
        found.update((story, CentredStory(language, chunks)) for story, chunks in zip(stories, parts, strict=True))
    return found


def compare_all(db: sqlite3.Connection, candidates: Mapping[int, Sequence[int]]) -> dict[int, Compared]:
    """Each of these stories beside its candidates.

    Some parts are read ahead side by side: the vectors are anywhere in a file that is larger than the memory.
    """
    (path,) = db.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()
    story_ids = list(candidates)
    parts = [story_ids[at : at + COMPARED_AT_ONCE] for at in range(0, len(story_ids), COMPARED_AT_ONCE)]
    needed = [{*part, *chain.from_iterable(candidates[story_id] for story_id in part)} for part in parts]
    found, reading = dict[int, Compared](), deque[Future[None]]()
    with ThreadPoolExecutor(READERS) as pool:
        for at, part in enumerate(parts):
            reading += [pool.submit(_read_ahead, path, ids) for ids in needed[at + len(reading) : at + PARTS_AHEAD]]
            reading.popleft().result()
            held = read_centred(db, needed[at])
            for story_id in part:
                found[story_id] = compare(held[story_id], {other: held[other] for other in candidates[story_id]})
    return found


def _read_ahead(path: str, ids: Collection[int]) -> None:
    """Bring the vectors of stories into the page cache.

    The query has one row, since for each row a thread waits for the GIL.
    """
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS)) as db:
        db.execute(
            f"SELECT max(language), sum(length(chunks)) FROM vectors JOIN codes USING (story_id) WHERE {OF_IDS}",
            (json.dumps(list(ids)),),
        ).fetchone()


def compare(story: CentredStory, others: Mapping[int, CentredStory]) -> Compared:
    """A story beside others, the most alike first."""
    similarities = _compute_similarities(story.chunks, others)
    by_language = defaultdict[Language, dict[int, float]](dict)
    for other in sorted(similarities, key=similarities.__getitem__, reverse=True):
        by_language[others[other].language][other] = similarities[other]
    backgrounds = {
        language: measure_background([similarity_of[other] for other in _choose_nearest(list(similarity_of), others)])
        for language, similarity_of in by_language.items()
    }
    return Compared(story.language, dict(by_language), backgrounds)


def _compute_similarities(story: Vectors, others: Mapping[int, CentredStory]) -> dict[int, float]:
    by_length = defaultdict[int, list[int]](list)
    for other, held in others.items():
        by_length[len(held.chunks)].append(other)
    found = dict[int, float]()
    for ids in by_length.values():
        alike = margins.align_with_others(story, np.stack([others[other].chunks for other in ids]))
        found.update(zip(ids, alike.tolist(), strict=True))
    return found


def _choose_nearest(ids: Sequence[int], others: Mapping[int, CentredStory]) -> list[int]:
    """The stories that the background is made of: the first few, or all but copies if one of these is a copy."""
    first = _drop_copies(ids[: 1 + NEIGHBOURS], others)
    return first if len(first) > NEIGHBOURS else _drop_copies(ids, others)


def _drop_copies(ids: Sequence[int], others: Mapping[int, CentredStory]) -> list[int]:
    """Of several stories with the same text, as reposts have, the first: they are one neighbour."""
    chunks = [others[other].chunks for other in ids]
    firsts = np.cumsum([0, *map(len, chunks[:-1])])
    whole = scale_to_unit(np.add.reduceat(np.concatenate(chunks), firsts))
    copies = np.triu(whole @ whole.T >= SAME_TEXT, 1).sum(axis=0).tolist()
    return [other for other, earlier in zip(ids, copies, strict=True) if not earlier]


def read_backgrounds(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, dict[Language, float]]:
    """The backgrounds of each of these stories that was searched for."""
    rows = db.execute(
        f"SELECT story_id, backgrounds FROM codes WHERE backgrounds IS NOT NULL AND {OF_IDS}", (json.dumps(list(ids)),)
    )
    return {story_id: json.loads(of_story) for story_id, of_story in rows}


def put_searched(db: sqlite3.Connection, searched: Iterable[Searched]) -> None:
    """Record that stories were searched for, in one transaction."""
    with transaction(db):
        for story in searched:
            backgrounds = json.dumps({language: round(value, 4) for language, value in story.backgrounds.items()})
            db.execute(
                "UPDATE codes SET backgrounds = ?, translated = ?, retold = ? WHERE story_id = ?",
                (backgrounds, story.widest.get(TRANSLATED), story.widest.get(RETOLD), story.story_id),
            )


def read_widest_margins(db: sqlite3.Connection, kind: Kind) -> list[float]:
    """The widest margin of each story that was searched for and has pairs of a kind."""
    rows = db.execute(f"SELECT {kind} FROM codes WHERE {kind} IS NOT NULL ORDER BY story_id")
    return [margin for (margin,) in rows]


def read_distributions(db: sqlite3.Connection) -> dict[Kind, ExtremeValues]:
    """The distribution of the widest margins of each kind by its last fit; a default before the first."""
    rows = db.execute("SELECT kind, location, scale, shape FROM fitted")
    return dict(UNFITTED) | {kind: ExtremeValues(*fitted) for kind, *fitted in rows}


def keep_fits(db: sqlite3.Connection, fitted: Mapping[Kind, ExtremeValues], least: Mapping[Kind, float]) -> int:
    """Record fits; stories with the least margin of a kind or a wider one are searched for again.

    Returns how many those are.
    """
    with transaction(db):
        db.executemany("INSERT OR REPLACE INTO fitted VALUES (?, ?, ?, ?)", ((kind, *fitted[kind]) for kind in fitted))
        return db.execute(
            "UPDATE codes SET backgrounds = NULL WHERE translated >= ? OR retold >= ?",
            (least[TRANSLATED], least[RETOLD]),
        ).rowcount
