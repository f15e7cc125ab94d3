"""The similarity of stories: the share of the words of a story that stand in its sources.

The view `sources` says which flags count.  A flag of which a text was missing has no spans and adds nothing until its
pair is verified again.  Triggers mark the stories whose flags change as due; each transaction that changes flags calls
`refresh` before it ends, so readers find every similarity up to date.

The copied words of a flag are spans, [start, end) in words, packed into a few bytes each: the bounds of the spans in
their order are stored as differences, each from the bound before it, as variable-length integers of 7 bits a byte
(LEB128).  The sign of a difference is its lowest bit, so that any order can be stored.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from neardup.core.publication_order import Dates
from neardup.core.verify.spans import count_words, measure_share, sum_up_copied, union_of_spans
from neardup.ledger import AMONG, Row, dump_list, languages, select_named_rows
from neardup.ledger.flags import OPEN, Selection, make_condition
from neardup.records import NO_SPANS, Kind, Language, ShownId, Spans, show_id

MORE = 0x80  # the bit of a byte after which its integer goes on


class Source(Struct, frozen=True):
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
    def shown(self) -> ShownId:
        """The id as the listing has it."""
        return show_id(self.story_id, self.name)

    @property
    def dates(self) -> Dates:
        return Dates(self.published_at, self.updated_at, self.known_since, self.catalogue)


class Similarity(Struct, frozen=True):
    """How much of a story stands in its sources, which are listed by share, the largest first.

    `copied_words` are the words of `spans`, the union of the spans of all sources; `similarity` is their share.  The
    platform is asked to hide a story that `is_hidden`, see `ledger.authors`.
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
    is_hidden: bool = False

    @property
    def shown(self) -> ShownId:
        """The id as the listing has it."""
        return show_id(self.story_id, self.name)

    @property
    def dates(self) -> Dates:
        return Dates(self.published_at, self.updated_at, self.known_since)


def read_similarity(db: sqlite3.Connection, story_id: int) -> Similarity | None:
    """The similarity of a story with its sources; None for a story that the ledger does not have."""
    story = select_named_rows(
        db,
        "SELECT id AS story_id, language, title, path, author_id, published_at, words, name, updated_at, known_since,"
        " EXISTS (SELECT 1 FROM hidden_stories WHERE story_id = ?1) AS is_hidden FROM described WHERE id = ?1",
        (story_id,),
    ).fetchone()
    if story is None:
        return None
    story["is_hidden"] = bool(story["is_hidden"])
    rows = select_named_rows(
        db,
        "SELECT o.flag_id, m.id AS story_id, m.title, m.path, m.author_id, m.published_at, m.updated_at,"
        " m.known_since, m.name, m.catalogue, m.licence, f.kind, f.status, o.spans, o.source_spans"
        " FROM sources o JOIN flags f USING (flag_id) JOIN described m ON m.id = o.source_id"
        " WHERE o.story_id = ?",
        (story_id,),
    )
    found = [_make_source(row, story["words"]) for row in rows]
    spans = union_of_spans(_join_spans([source.spans for source in found]))
    copied = count_words(spans)
    return Similarity(
        **story,
        copied_words=copied,
        similarity=measure_share(copied, story["words"]),
        spans=spans,
        sources=tuple(sorted(found, key=lambda source: (-source.copied_words, source.story_id))),
    )


def leave_out(found: Similarity, source_ids: Collection[int]) -> Similarity:
    """The similarity without some of its sources: they keep their places, but their words no longer count."""
    sources = tuple(
        replace(source, spans=NO_SPANS) if source.story_id in source_ids else source for source in found.sources
    )
    spans = union_of_spans(_join_spans([source.spans for source in sources]))
    copied = count_words(spans)
    similarity = measure_share(copied, found.words)
    return replace(found, sources=sources, spans=spans, copied_words=copied, similarity=similarity)


def read_similarities(db: sqlite3.Connection, story_ids: Iterable[int]) -> dict[int, float]:
    """The similarities of those of these stories that copy, by id."""
    rows = db.execute(f"SELECT story_id, similarity FROM similarities WHERE story_id {AMONG}", (dump_list(story_ids),))
    return dict(rows.fetchall())


def _make_source(row: Row, words: int) -> Source:
    spans = unpack_spans(row["spans"])
    copied = count_words(spans)
    unpacked = {"spans": spans, "source_spans": unpack_spans(row["source_spans"])}
    return Source(**row | unpacked, copied_words=copied, share=measure_share(copied, words))


def _join_spans(spans: list[Spans]) -> Spans:
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
        found[story_id, language, words].append((source_id, kind, unpack_spans(spans)))
    db.execute("DELETE FROM similarities WHERE story_id IN (SELECT story_id FROM due_similarities)")
    db.executemany(
        "INSERT INTO similarities VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (*story, *copied)
            for story, sources in found.items()
            if (copied := sum_up_copied(story[2], sources)) is not None
        ),
    )
    db.execute("DELETE FROM due_similarities")


# The stories that copy, listed by their similarity.


def select(db: sqlite3.Connection, selection: Selection = OPEN, *, limit: int = -1, offset: int = 0) -> Iterator[Row]:
    """The stories that copy by a flag of a selection, the highest similarity first.

    Columns: story_id, language, title, path, author_id, published_at, words, copied_words, similarity, sources,
    top_source_id, top_source_title, top_source_author_id, top_share, kinds, name, top_source_name, the other dates of
    both stories, top_source_catalogue, top_source_licence, and those of the latest verdict on a pair with a source:
    verdict, moderator, note, decided_at, undone_at, undone_by; and hidden, whether the platform is asked to hide it.
    `selection.similarity` is the least similarity.  `kinds` are those of all sources, the most severe first, joined by
    ", "; `top_source_id` is the source with the largest share.
    """
    condition, values = _make_condition(db, selection)
    return select_named_rows(
        db,
        "SELECT x.story_id, s.language, s.title, s.path, s.author_id, s.published_at, x.words, copied_words,"
        " similarity, sources, top_source AS top_source_id, t.title AS top_source_title,"
        " t.author_id AS top_source_author_id, top_share, kinds, s.name, t.name AS top_source_name, s.updated_at,"
        " s.known_since, t.published_at AS top_source_published_at, t.updated_at AS top_source_updated_at,"
        " t.known_since AS top_source_known_since,"
        " t.catalogue AS top_source_catalogue, t.licence AS top_source_licence,"
        " v.verdict, v.moderator, v.note, v.decided_at, v.undone_at, v.undone_by,"
        " x.story_id IN (SELECT story_id FROM hidden_stories) AS hidden"
        f" FROM (SELECT * FROM similarities x WHERE {condition}"
        " ORDER BY similarity DESC, story_id LIMIT ? OFFSET ?) x"
        " JOIN described s ON s.id = x.story_id JOIN described t ON t.id = top_source"
        " LEFT JOIN verdicts v ON v.verdict_id = (SELECT max(w.verdict_id) FROM sources o JOIN verdicts w"
        " ON w.a = min(o.story_id, o.source_id) AND w.b = max(o.story_id, o.source_id) WHERE o.story_id = x.story_id)"
        " ORDER BY similarity DESC, x.story_id",
        (*values, limit, offset),
    )


def tally(db: sqlite3.Connection, selection: Selection = OPEN) -> Counter[Language]:
    """The number of stories that `select` finds, by language."""
    of_flags, values = make_condition(db, replace(selection, similarity=None))
    name_of = languages.map_names(db)
    # IN takes half the time of EXISTS where all rows are counted
    rows = db.execute(
        "SELECT language, count(*) FROM similarities WHERE similarity >= ? AND story_id IN"
        f" (SELECT o.story_id FROM flags JOIN sources o USING (flag_id) WHERE {of_flags}) GROUP BY 1",
        (selection.similarity or 0.0, *values),
    )
    return Counter({name_of[language]: n for language, n in rows})


def _make_condition(db: sqlite3.Connection, selection: Selection) -> tuple[str, list[object]]:
    """A selection as an SQL condition on the table `similarities`, named x, with its values."""
    of_flags, values = make_condition(db, replace(selection, similarity=None), by_flag_id=True)
    of_sources = "flag_id IN (SELECT flag_id FROM sources o WHERE o.story_id = x.story_id)"
    condition = f"x.similarity >= ? AND EXISTS (SELECT 1 FROM flags WHERE {of_sources} AND {of_flags})"
    return condition, [selection.similarity or 0.0, *values]


# Spans.


def pack_spans(spans: Spans) -> bytes | None:
    """(n, 2) spans -> bytes; None for no spans."""
    encoded, before = bytearray(), 0
    for bound in spans.ravel().tolist():  # few, so that numpy would take longer
        step = bound - before
        before, number = bound, -2 * step - 1 if step < 0 else 2 * step
        while number >= MORE:
            encoded.append(number & 0x7F | MORE)
            number >>= 7
        encoded.append(number)
    return bytes(encoded) or None


def unpack_spans(data: bytes | None) -> Spans:
    """The inverse of `pack_spans`."""
    if data is None:
        return NO_SPANS
    bounds, bound, number, shift = list[int](), 0, 0, 0
    for octet in data:
        number |= (octet & 0x7F) << shift
        shift += 7
        if octet < MORE:
            bound += number >> 1 ^ -(number & 1)
            bounds.append(bound)
            number = shift = 0
    return np.array(bounds, np.int32).reshape(-1, 2)


def read_spans(db: sqlite3.Connection, story_id: int) -> dict[int, tuple[Spans, Spans]]:
    """The spans of each flag of a story, by the flag's id: those of the story, and those of the other one."""
    rows = db.execute(
        "SELECT flag_id, spans_a, spans_b FROM flags WHERE a = ?1 UNION ALL"
        " SELECT flag_id, spans_b, spans_a FROM flags WHERE b = ?1",
        (story_id,),
    )
    return {flag_id: (unpack_spans(own), unpack_spans(other)) for flag_id, own, other in rows}
