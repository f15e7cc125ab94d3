"""The similarity of stories: the share of the words of a story that stand in its sources.

The view `sources` says which flags count.  A flag of which a text was missing has no spans and adds nothing until its
pair is verified again.  Triggers mark the stories whose flags change as due; each transaction that changes flags calls
`refresh` before it ends, so readers find every similarity up to date.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from neardup.core.publication_order import Dates
from neardup.core.verify.tiers import tier_of
from neardup.ledger.spans import union, unpacked, words_in
from neardup.records import NO_SPANS, Kind, Language, Spans


@dataclass(frozen=True, slots=True)
class Source:
    """A story that another one copies, and the copied words: `spans` in the copy, `source_spans` in the source.

    `share` is the part of the copy's words that stand in this source.  A source of which a text was missing has no
    spans.  Times are milliseconds.  A work of the reference has a `catalogue`.
    """

    flag_id: int
    story_id: int
    title: str | None
    path: str | None
    author_id: str | None
    published_at: int | None
    kind: Kind
    status: str
    copied_words: int
    share: float
    spans: Spans
    source_spans: Spans
    name: str | None = None
    updated_at: int | None = None
    known_since: int | None = None
    catalogue: str | None = None
    licence: str | None = None

    @property
    def dates(self) -> Dates:
        return Dates(self.published_at, self.updated_at, self.known_since, self.catalogue)


@dataclass(frozen=True, slots=True)
class Similarity:
    """How much of a story stands in its sources, which are listed by share, the largest first.

    `copied_words` are the words of `spans`, the union of the spans of all sources; `similarity` is their share.
    """

    story_id: int
    language: Language
    title: str | None
    path: str | None
    author_id: str | None
    published_at: int | None
    words: int
    copied_words: int
    similarity: float
    spans: Spans
    sources: tuple[Source, ...]
    name: str | None = None
    updated_at: int | None = None
    known_since: int | None = None

    @property
    def dates(self) -> Dates:
        return Dates(self.published_at, self.updated_at, self.known_since)


def of_story(db: sqlite3.Connection, story_id: int) -> Similarity | None:
    """The similarity of a story with its sources; None for a story that the ledger does not have."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    story = cursor.execute("SELECT * FROM described WHERE id = ?", (story_id,)).fetchone()
    if story is None:
        return None
    rows = cursor.execute(
        "SELECT o.flag_id, m.id, m.title, m.path, m.author_id, m.published_at, m.updated_at, m.known_since, m.name,"
        " m.catalogue, m.licence,"
        " f.kind, f.status, o.spans, o.source_spans"
        " FROM sources o JOIN flags f USING (flag_id) JOIN described m ON m.id = o.source_id"
        " WHERE o.story_id = ?",
        (story_id,),
    )
    found = [_source(row, story["words"]) for row in rows]
    spans = union(_joined([source.spans for source in found]))
    copied = words_in(spans)
    return Similarity(
        story_id,
        language=Language(story["language"]),
        title=story["title"],
        path=story["path"],
        author_id=story["author_id"],
        published_at=story["published_at"],
        name=story["name"],
        updated_at=story["updated_at"],
        known_since=story["known_since"],
        words=story["words"],
        copied_words=copied,
        similarity=share_of(copied, story["words"]),
        spans=spans,
        sources=tuple(sorted(found, key=lambda source: (-source.copied_words, source.story_id))),
    )


def shares(db: sqlite3.Connection, story_ids: Iterable[int]) -> dict[int, float]:
    """The similarities of those of these stories that copy, by id."""
    rows = db.execute(
        "SELECT story_id, similarity FROM similarities WHERE story_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(story_ids)),),
    )
    return dict(rows.fetchall())


def _source(row: sqlite3.Row, words: int) -> Source:
    spans = unpacked(row["spans"])
    copied = words_in(spans)
    return Source(
        row["flag_id"],
        row["id"],
        title=row["title"],
        path=row["path"],
        author_id=row["author_id"],
        published_at=row["published_at"],
        name=row["name"],
        updated_at=row["updated_at"],
        known_since=row["known_since"],
        catalogue=row["catalogue"],
        licence=row["licence"],
        kind=row["kind"],
        status=row["status"],
        copied_words=copied,
        share=share_of(copied, words),
        spans=spans,
        source_spans=unpacked(row["source_spans"]),
    )


def share_of(copied: int, words: int) -> float:
    """The share of copied words, from 0 to 1."""
    return min(copied / words, 1.0) if words else 0.0


def _joined(spans: list[Spans]) -> Spans:
    return np.concatenate([NO_SPANS, *spans])


def refresh(db: sqlite3.Connection) -> None:
    """Compute the similarities that are due, within the caller's transaction."""
    if db.execute("SELECT 1 FROM due_similarities LIMIT 1").fetchone() is None:
        return
    found: defaultdict[tuple[int, int, int], list[tuple[int, Kind, Spans]]] = defaultdict(list)
    rows = db.execute(
        "SELECT s.id, s.language, s.words, o.source_id, f.kind, o.spans FROM due_similarities d"
        " CROSS JOIN stories s ON s.id = d.story_id CROSS JOIN sources o ON o.story_id = d.story_id"
        " CROSS JOIN flags f ON f.flag_id = o.flag_id WHERE o.spans IS NOT NULL"
    )
    for story_id, language, words, source_id, kind, spans in rows:
        found[story_id, language, words].append((source_id, kind, unpacked(spans)))
    db.execute("DELETE FROM similarities WHERE story_id IN (SELECT story_id FROM due_similarities)")
    db.executemany(
        "INSERT INTO similarities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (row for story, sources in found.items() if (row := row_of(*story, sources)) is not None),
    )
    db.execute("DELETE FROM due_similarities")


def row_of(
    story_id: int, language: int, words: int, sources: list[tuple[int, Kind, Spans]]
) -> tuple[object, ...] | None:
    """The row of a story in `similarities`; None where none of its words is copied."""
    copied_of = {source_id: copied for source_id, _, spans in sources if (copied := words_in(spans))}
    if not copied_of:
        return None
    copied = words_in(_joined([spans for *_, spans in sources]))
    top = min(copied_of, key=lambda source_id: (-copied_of[source_id], source_id))
    kinds = sorted(
        {kind for source_id, kind, _ in sources if source_id in copied_of}, key=lambda kind: tier_of(kind).severity
    )
    return (
        story_id,
        language,
        words,
        copied,
        share_of(copied, words),
        len(copied_of),
        top,
        share_of(copied_of[top], words),
        ", ".join(kinds),
    )
