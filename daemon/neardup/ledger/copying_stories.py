"""Lists of the stories that copy, by their similarity."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from neardup.ledger import languages
from neardup.ledger.selection import Selection, conditions
from neardup.records import Language

OPEN = Selection()


def selected(
    db: sqlite3.Connection,
    selection: Selection = OPEN,
    *,
    limit: int = -1,
    offset: int = 0,
) -> Iterator[sqlite3.Row]:
    """The stories that copy by a flag of a selection, the highest similarity first.

    Columns: story_id, language, title, path, author_id, published_at, words, copied_words, similarity, sources,
    top_source_id, top_source_title, top_source_author_id, top_share, kinds, name, top_source_name, the other dates of
    both stories, top_source_catalogue, top_source_licence, and those of the latest verdict on a pair with a source:
    verdict, moderator, note, decided_at, undone_at, undone_by.
    `selection.similarity` is the least similarity.  `kinds` are those of all sources, the most severe first, joined by
    ", "; `top_source_id` is the source with the largest share.
    """
    holding, values = _holding(db, selection)
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(
        "SELECT x.story_id, s.language, s.title, s.path, s.author_id, s.published_at, x.words, copied_words,"
        " similarity, sources, top_source AS top_source_id, t.title AS top_source_title,"
        " t.author_id AS top_source_author_id, top_share, kinds, s.name, t.name AS top_source_name, s.updated_at,"
        " s.known_since, t.published_at AS top_source_published_at, t.updated_at AS top_source_updated_at,"
        " t.known_since AS top_source_known_since,"
        " t.catalogue AS top_source_catalogue, t.licence AS top_source_licence,"
        " v.verdict, v.moderator, v.note, v.decided_at, v.undone_at, v.undone_by"
        f" FROM (SELECT * FROM similarities x WHERE {holding}"
        " ORDER BY similarity DESC, story_id LIMIT ? OFFSET ?) x"
        " JOIN described s ON s.id = x.story_id JOIN described t ON t.id = top_source"
        " LEFT JOIN verdicts v ON v.verdict_id = (SELECT max(w.verdict_id) FROM sources o JOIN verdicts w"
        " ON w.a = min(o.story_id, o.source_id) AND w.b = max(o.story_id, o.source_id) WHERE o.story_id = x.story_id)"
        " ORDER BY similarity DESC, x.story_id",
        (*values, limit, offset),
    )


def tally(db: sqlite3.Connection, selection: Selection = OPEN) -> Counter[Language]:
    """The number of stories that `selected` finds, by language."""
    of_flags, values = conditions(db, replace(selection, similarity=None))
    name_of = languages.names(db)
    # IN takes half the time of EXISTS where all rows are counted
    rows = db.execute(
        "SELECT language, count(*) FROM similarities WHERE similarity >= ? AND story_id IN"
        f" (SELECT o.story_id FROM flags JOIN sources o USING (flag_id) WHERE {of_flags}) GROUP BY 1",
        (selection.similarity or 0.0, *values),
    )
    return Counter({name_of[language]: n for language, n in rows})


def _holding(db: sqlite3.Connection, selection: Selection) -> tuple[str, list[object]]:
    """A selection as an SQL condition on the table `similarities`, named x, with its values."""
    of_flags, values = conditions(db, replace(selection, similarity=None), by_flag_id=True)
    of_sources = "flag_id IN (SELECT flag_id FROM sources o WHERE o.story_id = x.story_id)"
    holding = f"x.similarity >= ? AND EXISTS (SELECT 1 FROM flags WHERE {of_sources} AND {of_flags})"
    return holding, [selection.similarity or 0.0, *values]
