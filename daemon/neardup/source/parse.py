"""A row of a listing -> a Story, or a BadRow with the reason.

A story is identified by an integer.  If it is listed with another id, which is then its name, the integer is made from
a hash of the name, so that it depends on nothing else, and indexes and databases only ever hold integers.

A work of the reference has the name `reference:CATALOGUE/ID`, which no story of the platform may have, and a negative
integer.
"""

import re
from collections.abc import AsyncIterable, AsyncIterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import xxhash

from neardup.core.columns import ListedBlock, StoryColumns
from neardup.core.languages import Languages
from neardup.records import FIRST_ID_OF_NAMES, BadRow, Dead, Language, ListedRow, Story
from neardup.source import make_blocks
from neardup.source.rows import PlainRows, Row

MAX_ID = 2**63 - 1
DIGITS_OF_MAX_ID = 19
DIGITS = re.compile(r"[0-9]{1,19}")
ROW_KEY = "row:"  # begins the key of a row that describes no story
LONGEST_NAME = 1000  # characters
REFERENCE = "reference:"  # begins the names of works
NUMBER_OF_WORK = re.compile(r"-[0-9]{19}")
CATALOGUE = re.compile(r"[^/,]{1,100}")
DEFAULT_KEY = "{language}/{id}.html"
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Control characters other than tabs and line ends, and code points that are no characters: XML forbids some of them,
# and a terminal obeys some of them.
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:[Zz]| UTC|[+-]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?)?", re.ASCII
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class BadValue(ValueError):
    """Why a row does not describe a story, or has no text to compare."""

    def __init__(self, reason: Dead, error: str) -> None:
        super().__init__(error)
        self.reason = reason


async def parse_rows(
    rows: AsyncIterable[Row | PlainRows], languages: Languages, key: str, *, of_reference: bool
) -> AsyncIterator[ListedBlock]:
    """Rows in blocks, each as `parse_row` parses it."""

    async def parse_each() -> AsyncIterator[ListedRow | StoryColumns]:
        async for block in rows:
            if (
                isinstance(block, PlainRows)
                and not of_reference
                and (stories := _parse_plain_stories(block, languages))
            ):
                yield stories
                continue
            for row in [block] if isinstance(block, Row) else block.rows():
                yield parse_row(row, languages, key, of_reference=of_reference)

    async for block in make_blocks(parse_each()):
        yield block


def _parse_plain_stories(rows: PlainRows, languages: Languages) -> StoryColumns | None:
    """The stories that these rows describe; None unless each describes one, whose id is an integer."""
    nothing: list[str | None] = [None] * len(rows)

    def clean_texts(column: str) -> list[str | None]:
        return [value.strip() or None for value in rows.values[column]] if column in rows.values else nothing

    def convert_times(column: str) -> list[int | None]:
        return [None if value is None else parse_time(value) for value in clean_texts(column)]

    ids = [value or "" for value in clean_texts("id")]
    if not all(value.isascii() and value.isdigit() and len(value) < DIGITS_OF_MAX_ID for value in ids):
        return None
    words = [word or "" for word in clean_texts("language")]
    try:
        named = {word: languages.find(word) for word in set(words)}
        return StoryColumns(
            ids=list(map(int, ids)),
            languages=[named[word] for word in words],
            paths=[path and check_path(path) for path in clean_texts("path")],
            author_ids=_make_all_printable(clean_texts("author_id")),
            titles=_make_all_printable(clean_texts("title")),
            published_at=convert_times("published_at"),
            updated_at=convert_times("updated_at"),
            positions=rows.positions,
            names=nothing,
            catalogues=nothing,
            licences=nothing,
            series_ids=_make_all_printable(clean_texts("series_id")),
        )
    except (ValueError, OverflowError):
        return None


def _make_all_printable(values: list[str | None]) -> list[str | None]:
    """As `make_printable`, of stripped texts."""
    if UNPRINTABLE.search("\n".join(filter(None, values))):
        return [value and UNPRINTABLE.sub("\ufffd", value) for value in values]
    return values


def parse_row(row: Row, languages: Languages, key: str = DEFAULT_KEY, *, of_reference: bool = False) -> ListedRow:
    """The story, or the work of the reference, that a row describes; a BadRow if it describes none.

    Its language is one of these.  A work, and a story with a name, always has a path, by `key` if it is listed without
    one.
    """
    try:
        if row.error:
            raise BadValue(Dead.BAD_ROW, row.error)
        texts = {name: _parse_text(value) for name, value in row.values.items()}
        catalogue = _parse_catalogue(texts.get("catalogue")) if of_reference else None
        story_id, name = _parse_id(texts.get("id"), catalogue)
        language, path = _parse_language(texts.get("language"), languages), texts.get("path")
        return Story(
            id=story_id,
            language=language,
            path=_parse_path(key.format(language=language, id=texts["id"]) if name and not path else path),
            author_id=make_printable(texts.get("author_id")),
            title=make_printable(texts.get("title")),
            published_at=_parse_time(texts.get("published_at"), "published_at"),
            updated_at=_parse_time(texts.get("updated_at"), "updated_at"),
            position=row.position,
            name=name,
            catalogue=catalogue,
            licence=make_printable(texts.get("licence")) if of_reference else None,
            series_id=make_printable(texts.get("series_id")),
        )
    except BadValue as bad:
        key = f"{ROW_KEY}{xxhash.xxh3_64_hexdigest(row.raw.encode())}"
        return BadRow(key, bad.reason, f"{bad}, in the row {row.raw[:200]!r}", row.position)


def _parse_text(value: object) -> str | None:
    """A value as text, stripped; None if empty.  Lone surrogates, which SQLite cannot store, become question marks."""
    if value is None:
        return None
    text = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return (text if text.isascii() else text.encode("utf-8", "replace").decode()).strip() or None


def make_printable(value: object) -> str | None:
    """Text that every terminal and file format can show, stripped: unprintable characters become U+FFFD."""
    text = _parse_text(value)
    return text and UNPRINTABLE.sub("\ufffd", text)


def _parse_id(value: str | None, catalogue: str | None) -> tuple[int, str | None]:
    """The id of a story, and its name if it has one; that of a work, if a catalogue lists it."""
    if value is None:
        raise BadValue(Dead.BAD_ID, "no id")
    try:
        if catalogue is None:
            refuse_work(value)
        else:
            value = f"{REFERENCE}{catalogue}/{value}"
        return parse_id(value), parse_name(value)
    except ValueError as error:
        raise BadValue(Dead.BAD_ID, str(error)) from None


def _parse_catalogue(value: str | None) -> str:
    if value is None or not CATALOGUE.fullmatch(value) or UNPRINTABLE.search(value) or CONTROL.search(value):
        wrong = f"the catalogue {value or ''!r} is not 1 to 100 printable characters without slash and comma"
        raise BadValue(Dead.BAD_ROW, wrong)
    return value


def refuse_work(listed: str) -> None:
    """Raise ValueError for the name or the integer of a work of the reference."""
    listed = listed.strip()
    if listed.startswith(REFERENCE) or _is_number_of_work(listed):
        raise ValueError(f"the id {listed[:40]!r} is one that only a work of the reference can have")


def _is_number_of_work(text: str) -> bool:
    return NUMBER_OF_WORK.fullmatch(text) is not None and -MAX_ID <= int(text) <= -FIRST_ID_OF_NAMES


def parse_id(listed: str) -> int:
    """The integer of a story that is listed with this id, which is an integer or a name.  Raises ValueError.

    Space around an id is no part of it, wherever the id comes from.  That of a work is accepted as well.
    """
    listed = listed.strip()
    if parse_name(listed) is None or _is_number_of_work(listed):
        return int(listed)
    if len(listed) > LONGEST_NAME or UNPRINTABLE.search(listed) or CONTROL.search(listed) or not listed:
        raise ValueError(f"the id {listed[:40]!r} is not 1 to {LONGEST_NAME} printable characters")
    made = FIRST_ID_OF_NAMES | xxhash.xxh3_64_intdigest(listed.encode("utf-8", "replace")) % FIRST_ID_OF_NAMES
    return -made if listed.startswith(REFERENCE) else made


def parse_name(listed: str) -> str | None:
    """The name of a story that is listed with this id; None for an integer."""
    listed = listed.strip()
    return None if DIGITS.fullmatch(listed) and int(listed) <= MAX_ID else listed


def quote_id(listed: str) -> str:
    """The id of a story or an author as a segment of a path.

    Browsers, proxies and libraries take `.` and `..` for steps between folders however they are written: before these
    stands a space, which is no part of an id.
    """
    quoted = quote(listed, safe="", errors="replace")
    return f"%20{quoted}" if quoted in {".", ".."} else quoted


def _parse_language(value: str | None, languages: Languages) -> Language:
    try:
        return languages.find(value or "")
    except ValueError:
        raise BadValue(Dead.BAD_LANGUAGE, f"unknown language {value or ''!r}") from None


def _parse_path(value: str | None) -> str | None:
    try:
        return value and check_path(value)
    except ValueError as error:
        raise BadValue(Dead.BAD_PATH, str(error)) from None


def check_path(value: str) -> str:
    """A path below the URL of a store, as it is.  Raises ValueError for one that leads elsewhere."""
    if set(value.split("/")) & {"", ".", ".."} or CONTROL.search(value):
        raise ValueError(f"the path {value!r} is not a path below the URL of the pages")
    return value


def _parse_time(value: str | None, column: str) -> int | None:
    if value is None:
        return None
    try:
        return parse_time(value)
    except (ValueError, OverflowError):
        raise BadValue(Dead.BAD_TIME, f"{column} {value!r} is not an RFC 3339 time") from None


def parse_time(value: str) -> int:
    """RFC 3339 or Athena's `2026-11-19 02:00:00.000 UTC`, in UTC unless a zone is given -> milliseconds since 1970.

    A date alone is its midnight; the other notations of ISO 8601, such as weeks, are refused.  Raises ValueError or
    OverflowError.
    """
    if TIME.fullmatch(value) is None:
        raise ValueError("not an RFC 3339 time")
    parsed = datetime.fromisoformat(value.upper().removesuffix(" UTC"))
    utc = parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return (utc - EPOCH) // timedelta(milliseconds=1)
