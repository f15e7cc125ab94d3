"""Which columns of a table hold the texts, their ids and their languages."""

from collections.abc import Sequence
from dataclasses import dataclass

from neardup.errors import Misuse

TEXTS = ("text", "body", "content", "story", "article", "html")  # the first that a table has is taken
IDS = ("id", "story_id", "doc_id", "document_id", "key", "name", "path", "url")
LANGUAGES = ("language", "lang")
MOST_NAMED = 20  # columns in an error message


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of columns; None for one that is to be guessed, or that a table does not have."""

    text: str | None = None
    id: str | None = None
    language: str | None = None


def choose_columns(table: str, present: Sequence[str], wanted: Columns) -> Columns:
    """The columns of a table to read: those wanted, and those with a plain name, in any case.

    Raises Misuse if a wanted column is missing, or if none has a plain name for texts.
    """
    for option, column in (("--text", wanted.text), ("--id", wanted.id)):
        if column is not None and _first([column], present) is None:
            raise Misuse(f"{option}: {table} has no column {column}, only {_listed(present)}")
    text = _first([wanted.text] if wanted.text else TEXTS, present) or (present[0] if len(present) == 1 else None)
    if text is None:
        raise Misuse(f"{table}: which column holds the texts? Name it with --text: {_listed(present)}")
    return Columns(text, _first([wanted.id] if wanted.id else IDS, present), _first(LANGUAGES, present))


def _first(names: Sequence[str], present: Sequence[str]) -> str | None:
    """The column that has the first of these names that any has."""
    columns = {column.strip().lower(): column for column in reversed(present)}
    return next((columns[name.lower()] for name in names if name.lower() in columns), None)


def _listed(present: Sequence[str]) -> str:
    more = f" and {len(present) - MOST_NAMED} more" if len(present) > MOST_NAMED else ""
    return f"{', '.join(present[:MOST_NAMED])}{more}" or "none"
