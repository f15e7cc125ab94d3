"""The comparison of stories with their candidates by the vectors of their chunks."""

import json
import sqlite3
from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import chain
from typing import NamedTuple

import numpy as np

from neardup.meaning import alignment
from neardup.meaning.centring import Vectors, unit
from neardup.meaning.codes import restored
from neardup.meaning.margins import NEIGHBOURS, background
from neardup.meaning.vectors import centring
from neardup.meaning.vectors_file import BUSY_SECONDS, OF_IDS, dimensions
from neardup.records import Language

SAME_TEXT = 0.9  # cosine of the vectors of two stories: candidates as alike as this are copies of each other
STORIES_AT_ONCE = 20  # whose candidates' vectors are in memory together, about 8 MB: more leave the nearest caches
READERS = 8  # threads that read ahead: side by side, reads from a disk take a third of the time
PARTS_AHEAD = 16  # each of so many stories; their pages of the file are about 100 MB


class Held(NamedTuple):
    """A story that has vectors: its language and its centred chunks, (chunks, dimensions)."""

    language: Language
    chunks: Vectors


class Compared(NamedTuple):
    """A story beside its candidates: how alike they are, by language, and its background in each language."""

    language: Language
    similarities: dict[Language, dict[int, float]]
    backgrounds: dict[Language, float]


def centred(db: sqlite3.Connection, ids: Iterable[int]) -> dict[int, Held]:
    """These stories with their vectors, by id."""
    size, by = dimensions(db), centring(db)
    rows = db.execute(
        f"SELECT language, story_id, chunks FROM vectors JOIN codes USING (story_id) WHERE {OF_IDS}",
        (json.dumps(list(ids)),),
    )
    by_language = defaultdict[Language, list[tuple[int, bytes]]](list)
    for language, story_id, chunks in rows:
        by_language[language].append((story_id, chunks))
    found = dict[int, Held]()
    for language, some in by_language.items():
        stories, stored = zip(*some, strict=True)
        vectors = by.apply(restored(np.frombuffer(b"".join(stored), np.int8).reshape(-1, size)), language)
        ends = np.cumsum([len(chunks) // size for chunks in stored])
        parts = np.split(vectors, ends[:-1])
        found.update((story, Held(language, chunks)) for story, chunks in zip(stories, parts, strict=True))
    return found


def compared(db: sqlite3.Connection, candidates: Mapping[int, Sequence[int]]) -> dict[int, Compared]:
    """Each of these stories beside its candidates.

    Some parts are read ahead side by side: the vectors are anywhere in a file that is larger than the memory.
    """
    (path,) = db.execute("SELECT file FROM pragma_database_list WHERE name = 'main'").fetchone()
    asked = list(candidates)
    parts = [asked[at : at + STORIES_AT_ONCE] for at in range(0, len(asked), STORIES_AT_ONCE)]
    needed = [{*part, *chain.from_iterable(candidates[story_id] for story_id in part)} for part in parts]
    found, reading = dict[int, Compared](), deque[Future[None]]()
    with ThreadPoolExecutor(READERS) as pool:
        for at, part in enumerate(parts):
            reading += [pool.submit(_read_ahead, path, ids) for ids in needed[at + len(reading) : at + PARTS_AHEAD]]
            reading.popleft().result()
            held = centred(db, needed[at])
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


def compare(story: Held, others: Mapping[int, Held]) -> Compared:
    """A story beside others, which are the more alike first."""
    similarities = _similarities(story.chunks, others)
    by_language = defaultdict[Language, dict[int, float]](dict)
    for other in sorted(similarities, key=similarities.__getitem__, reverse=True):
        by_language[others[other].language][other] = similarities[other]
    backgrounds = {
        language: background([some[other] for other in _nearest_texts(list(some), others)])
        for language, some in by_language.items()
    }
    return Compared(story.language, dict(by_language), backgrounds)


def _similarities(story: Vectors, others: Mapping[int, Held]) -> dict[int, float]:
    by_length = defaultdict[int, list[int]](list)
    for other, held in others.items():
        by_length[len(held.chunks)].append(other)
    found = dict[int, float]()
    for some in by_length.values():
        alike = alignment.similarities(story, np.stack([others[other].chunks for other in some]))
        found.update(zip(some, alike.tolist(), strict=True))
    return found


def _nearest_texts(some: Sequence[int], others: Mapping[int, Held]) -> list[int]:
    """The stories that the background is made of: the first few without copies, or all if there are fewer."""
    first = _without_copies(some[: 1 + NEIGHBOURS], others)
    return first if len(first) > NEIGHBOURS else _without_copies(some, others)


def _without_copies(some: Sequence[int], others: Mapping[int, Held]) -> list[int]:
    """Of several stories with the same text, as reposts have, the first: they are one neighbour."""
    chunks = [others[other].chunks for other in some]
    firsts = np.cumsum([0, *map(len, chunks[:-1])])
    whole = unit(np.add.reduceat(np.concatenate(chunks), firsts))
    copies = np.triu(whole @ whole.T >= SAME_TEXT, 1).sum(axis=0).tolist()
    return [other for other, earlier in zip(some, copies, strict=True) if not earlier]
