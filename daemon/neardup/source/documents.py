"""Documents to scan: files, and rows of tables with a column of texts, each with a name and the path of its text.

A folder's text files are those with PAGE_ENDINGS.  A table is a CSV, TSV, JSON, JSONL or Parquet file; the texts of its
rows go into one file, the spool, where reader processes find them.
"""

import csv
import glob
import os
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Self

from msgspec import Struct

from neardup.core.languages import SHIPPED
from neardup.errors import Fatal, Misuse
from neardup.records import Dead, Language
from neardup.source.parse import BadValue
from neardup.source.rows import (
    CSV,
    HEADER_BYTES,
    SEPARATORS,
    TABLE_ENDINGS,
    FileReader,
    Row,
    detect_kind,
    open_parquet,
    read_csv,
    read_json,
    read_jsonl,
    read_parquet,
)

PAGE_ENDINGS = (".txt", ".md", ".html", ".htm", ".xhtml")
TEXTS = ("text", "body", "content", "story", "article", "html")  # the first that a table has is taken
IDS = ("id", "story_id", "doc_id", "document_id", "key", "name", "path", "url")
LANGUAGES = ("language", "lang")
MOST_NAMED = 20  # columns in an error message
LONGEST_CELL = 100_000_000  # characters; the library's own limit is 131,072

FOLDERS = 1_000  # whose real paths and paths below a root are kept
_find_relative_folder = lru_cache(FOLDERS)(os.path.relpath)
_resolve_folder = lru_cache(FOLDERS)(os.path.realpath)


class Document(Struct, frozen=True):
    """A document: its name, and its path below content.url.  If its `language` is None, it is to be detected."""

    name: str
    path: str
    language: Language | None = None


class BadDocument(Struct, frozen=True):
    """A document that cannot be read, and why."""

    name: str
    reason: Dead
    error: str


Listed = AsyncIterator[Document | BadDocument]


async def list_file_documents(files: Iterable[Path], *, root: Path, language: Language | None) -> Listed:
    """The files, which are below the folder `root`, named by their paths."""
    for file in files:
        try:
            str(file).encode()
        except UnicodeEncodeError:
            shown = os.fsencode(file).decode("utf-8", "replace")
            yield BadDocument(shown, Dead.BAD_PATH, "its name is not UTF-8")
            continue
        folder = _find_relative_folder(file.parent, root)
        yield Document(str(file), file.name if folder == os.curdir else f"{folder}/{file.name}", language)


def find_files(paths: Sequence[str], left_out: Counter[str], known: set[str]) -> list[Path]:
    """The files that paths name: each file as it is, a folder's files with PAGE_ENDINGS, and what matches a pattern.

    Folders are searched to any depth, without files and folders whose names begin with a dot.  A file is found once:
    the real paths of those found are added to `known`.  `left_out` counts the files of folders with other endings, by
    ending.  Raises Misuse for a path that names nothing, and for a folder that cannot be read.
    """
    files = []
    for path in paths:
        for file in _expand_path(path, left_out):
            real = _resolve(file)
            if real not in known:
                known.add(real)
                files.append(file)
    return files


def _resolve(file: Path) -> str:
    """As os.path.realpath, which asks for each folder above each file."""
    return os.path.realpath(file) if file.is_symlink() else f"{_resolve_folder(file.parent)}/{file.name}"


def _expand_path(path: str, left_out: Counter[str]) -> Iterator[Path]:
    if Path(path).is_dir():
        yield from list_files_below(Path(path), left_out)
    elif Path(path).exists():
        yield Path(path)
    elif matches := sorted(glob.glob(path, recursive=True)):  # noqa: PTH207 - a pattern may be absolute
        for match in matches:
            yield from list_files_below(Path(match), left_out) if Path(match).is_dir() else [Path(match)]
    else:
        raise Misuse(f"{path}: no such file or folder")


def list_files_below(folder: Path, left_out: Counter[str]) -> Iterator[Path]:
    """The files with PAGE_ENDINGS in a folder and below, sorted folder by folder, but no hidden ones.

    `left_out` counts the files with other endings, by ending.  Raises Misuse for a folder that cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise Misuse(f"cannot read the folder {error.filename}: {error.strerror}") from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(name for name in names if not name.startswith(".")):
            dot = name.rfind(".")
            ending = name[dot:].lower() if 0 < dot < len(name) - 1 else ""
            if ending in PAGE_ENDINGS:
                yield Path(parent, name)
            else:
                left_out[ending or "no ending"] += 1


class Columns(Struct, frozen=True):
    """The names of columns; None for one that is to be guessed, or that a table does not have."""

    text: str | None = None
    id: str | None = None
    language: str | None = None


def choose_columns(table: str, present: Sequence[str], wanted: Columns) -> Columns:
    """The columns of a table to read: those wanted, and those with a plain name, in any case.

    Raises Misuse if a wanted column is missing, or if none has a plain name for texts.
    """
    for option, column in (("--text", wanted.text), ("--id", wanted.id)):
        if column is not None and _choose_column([column], present) is None:
            raise Misuse(f"{option}: {table} has no column {column}, only {_describe(present)}")
    text = _choose_column([wanted.text] if wanted.text else TEXTS, present) or (
        present[0] if len(present) == 1 else None
    )
    if text is None:
        raise Misuse(f"{table}: which column holds the texts? Name it with --text: {_describe(present)}")
    return Columns(text, _choose_column([wanted.id] if wanted.id else IDS, present), _choose_column(LANGUAGES, present))


def _choose_column(names: Sequence[str], present: Sequence[str]) -> str | None:
    """The column that has the first of these names that any has."""
    columns = {column.strip().lower(): column for column in reversed(present)}
    return next((columns[name.lower()] for name in names if name.lower() in columns), None)


def _describe(present: Sequence[str]) -> str:
    more = f" and {len(present) - MOST_NAMED} more" if len(present) > MOST_NAMED else ""
    return f"{', '.join(present[:MOST_NAMED])}{more}" or "none"


class Spool:
    """Appends texts to a file; a text's path is START-END, in bytes, below the URL `texts:FILE`.

    Raises Fatal if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = 0
        try:
            self._file = path.open("xb", buffering=0)  # unbuffered: a text is read as soon as it is listed
        except OSError as error:
            raise self._explain_failure(error) from error

    def add(self, text: bytes) -> str:
        """Append a text; returns its path."""
        start = self._end
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise self._explain_failure(error) from error
        self._end += len(text)
        return f"{start}-{self._end}"

    def _explain_failure(self, error: OSError) -> Fatal:
        return Fatal(f"cannot write the texts to {self._path}: {error.strerror}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def spool_file(
    file: Path, name: str, language: Language | None, spool: Spool, max_bytes: int
) -> Document | BadDocument:
    """A file as a document whose text is in the spool; of a file that is too large, only the path of so many bytes."""
    try:
        if not file.is_file():
            return BadDocument(name, Dead.STORE_ERROR, "not a regular file")
        with file.open("rb") as opened:
            body = opened.read(max_bytes + 1)
    except OSError as error:
        reason = Dead.FORBIDDEN if isinstance(error, PermissionError) else Dead.STORE_ERROR
        return BadDocument(name, reason, error.strerror or str(error))
    path = spool.add(body) if len(body) <= max_bytes else f"0-{len(body)}"
    return Document(name, path, language)


class Table(Struct, frozen=True):
    """A table to read: its file, and what messages call it.

    In the names of its rows, `prefix` stands before their ids.
    """

    file: Path
    name: str
    prefix: str = ""


async def list_table_rows(table: Table, wanted: Columns, language: Language | None, spool: Spool) -> Listed:
    """The rows of a table, named by their ids, or by their numbers if there are none; their texts go to the spool.

    Raises Misuse if the table lacks a column or cannot be read.
    """
    csv.field_size_limit(LONGEST_CELL)
    columns: Columns | None = None
    number = 0
    async for row in _read_table(table, wanted):
        number += 1
        place = f"{table.name}, row {number}"
        if row.error:
            yield BadDocument(place, Dead.BAD_ROW, row.error)
            continue
        columns = columns or choose_columns(table.name, list(row.values), wanted)
        try:
            text, row_language = _get_text(row.values, columns), language or _get_language(row.values, columns)
        except BadValue as bad:
            yield BadDocument(place, bad.reason, str(bad))
            continue
        name = _get_id(row.values, columns) or f"row {number}"
        yield Document(f"{table.prefix}{name}", spool.add(text.encode("utf-8", "replace")), row_language)


def _read_table(table: Table, wanted: Columns) -> AsyncIterator[Row]:
    reader = FileReader(table.file, table.name)
    match detect_kind(reader.head(), table.file.suffix.lower()):
        case ".parquet":
            file = open_parquet(table.file, table.name)
            columns = choose_columns(table.name, [name.strip().lower() for name in file.schema_arrow.names], wanted)
            chosen = {column for column in (columns.text, columns.id, columns.language) if column is not None}
            return read_parquet(file, table.name, columns=chosen)
        case ".json":
            return read_json(reader)
        case ".jsonl":
            return read_jsonl(reader)
    return read_csv(reader, table.name, columns=None)


def _get_text(values: Mapping[str, object], columns: Columns) -> str:
    assert columns.text is not None
    text = values.get(columns.text)
    if not isinstance(text, str):
        raise BadValue(Dead.BAD_ROW, f"its {columns.text} is not a text")
    return text


def _get_id(values: Mapping[str, object], columns: Columns) -> str:
    value = None if columns.id is None else values.get(columns.id)
    return "" if value is None else str(value).strip()


def _get_language(values: Mapping[str, object], columns: Columns) -> Language | None:
    value = values.get(columns.language or LANGUAGES[0])  # the first row of a JSONL file may lack it
    if value is None or not str(value).strip():
        return None
    try:
        return SHIPPED.find(str(value))
    except ValueError as error:
        raise BadValue(Dead.BAD_LANGUAGE, f"{error}; --language compares it all the same") from None


def is_table(file: Path, wanted: Columns) -> bool:
    """Whether a file is a table, by its content; by its name if that leaves it open, or cannot be read."""
    ending = file.suffix.lower()
    if not file.is_file():
        return False
    try:
        with file.open("rb") as opened:
            head = opened.read(HEADER_BYTES)
    except OSError:
        return ending in TABLE_ENDINGS
    return ending in CSV or detect_kind(head, ending) not in CSV or _has_csv_header(head, wanted)


def _has_csv_header(head: bytes, wanted: Columns) -> bool:
    """Whether the first line names several columns, one of them that of the texts."""
    line = head.lstrip(b"\xef\xbb\xbf \r\n\t").partition(b"\n")[0].decode("utf-8", "replace")
    rows = [[cell.strip(' "\r').lower() for cell in line.split(separator)] for separator in SEPARATORS]
    texts = {wanted.text.lower()} if wanted.text else set(TEXTS)
    return any(len(cells) > 1 and texts & set(cells) for cells in rows)
