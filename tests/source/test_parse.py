"""Laws: every row is a story or a bad row with a reason, never an exception, and SQLite can store both; a time is the
same millisecond in every notation.
"""

import csv
import io
import json
import unicodedata
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.records import BadRow, Dead, Language, Story, format_time
from neardup.source import rows
from neardup.source.parse import DEFAULT_KEY, MAX_ID, parse_id, parse_name, parse_row, parse_rows, parse_time
from neardup.source.rows import Row, read_csv, read_csv_blocks

from tests.support.languages import CODES, HINDI, TEXTS

COLUMNS = ["id", "language", "path", "author_id", "title", "published_at", "updated_at"]
GOOD: dict[str, object] = {"id": "17", "language": "HINDI"}
NUMBER_OF_NAME = 6_009_744_667_990_004_318
TWO = 1_795_140_000_000  # 2026-11-20T02:00:00Z
anything = st.text(st.characters(exclude_categories=()))  # JSON may hold a lone surrogate
written = st.one_of(anything, st.sampled_from(["17", "hi", "HINDI", "a/b", "2026-11-19", "", " ", "1e3", "٣", "NaN"]))
values = st.one_of(st.none(), written, st.integers(), st.floats(), st.booleans(), st.lists(written, max_size=2))
zones = st.just(UTC) | st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
times = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1), timezones=zones)  # noqa: DTZ001


def read(**changes: object) -> Story | BadRow:
    values = GOOD | changes
    return parse_row(Row(5, values, json.dumps(values)), SHIPPED)


@given(st.dictionaries(st.sampled_from(COLUMNS), values), st.text(st.characters(codec="utf-8")), st.none() | st.text())
def test_any_row_is_a_story_or_a_bad_row(row: dict[str, object], raw: str, error: str | None) -> None:
    made = parse_row(Row(5, row, raw, error), SHIPPED)
    assert made.position == 5
    if isinstance(made, Story):
        assert 0 <= made.id <= MAX_ID
        assert not error
        assert "" not in (made.path, made.author_id, made.title), "an empty cell is None"
    else:
        assert made.key.startswith("row:")


@given(st.sampled_from(["path", "author_id", "title", "id", "language", "updated_at"]), anything)
@example("title", "\ud83d")
def test_every_listed_value_can_be_stored(column: str, value: str) -> None:
    """Neither SQLite nor a file accepts a lone surrogate."""
    made = parse_row(Row(0, json.loads(json.dumps(GOOD | {column: value})), ""), SHIPPED)
    held = made.error if isinstance(made, BadRow) else f"{made.path} {made.author_id} {made.title}"
    assert not any("\ud800" <= c <= "\udfff" for c in held), ascii(held)


@given(st.sampled_from(["author_id", "title"]), anything)
@example("title", "a\0b\x1b[2J")
def test_text_shown_to_people_fits_every_file_format(column: str, value: str) -> None:
    """XML, and so a spreadsheet, allows few control characters; a terminal executes them."""
    made = parse_row(Row(0, GOOD | {column: value}, ""), SHIPPED)
    assert isinstance(made, Story)
    for character in getattr(made, column) or "":
        assert character in "\t\n\r" or unicodedata.category(character) not in {"Cc", "Cs"}, ascii(value)
        assert character not in "\ufffe\uffff"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_title_in_any_script_is_unchanged(language: Language) -> None:
    title = f"{TEXTS[language]}\u200d\u200c\t\r\n\u202e{TEXTS[language]}"
    assert read(title=title) == Story(17, HINDI, title=title, position=5)


@given(times)
def test_a_time_is_the_same_millisecond_in_every_notation(at: datetime) -> None:
    at = at.replace(microsecond=at.microsecond // 1000 * 1000)
    want = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    utc = at.astimezone(UTC)
    athena = f"{utc.replace(tzinfo=None).isoformat(' ', 'milliseconds')}"
    forms = [at.isoformat(), utc.isoformat().replace("+00:00", "Z"), athena, f"{athena} UTC", format_time(want) or ""]
    assert {form: parse_time(form) for form in forms} == dict.fromkeys(forms, want)


@pytest.mark.parametrize(("changes", "reason"), [
    *(({"id": bad}, Dead.BAD_ID) for bad in (
        None, "", " ", "9" * 5000, "x" * 1001, "a\tb", "a\x1b[2Jb", "a\nb",
    )),
    *(({"language": bad}, Dead.BAD_LANGUAGE) for bad in (None, "", "KLINGON", "h", "tlh", "हिन्दी", 5)),
    *(({"path": bad}, Dead.BAD_PATH) for bad in ("../x", "/abs", "a/../../b", "..", "a/..", "x\0y")),
    *(({"updated_at": bad}, Dead.BAD_TIME) for bad in (
        "yesterday", "2026-13-01", "2026-11-19 25:00", 5, "2026-11-19 02:00 Asia/Kolkata", "9999-12-31T23:59:59-14:00",
        "0001-01-01T00:00:00+14:00",
    )),
    ({"published_at": "soon"}, Dead.BAD_TIME),
])  # fmt: skip
def test_a_bad_row_names_its_reason(changes: dict[str, object], reason: Dead) -> None:
    bad = read(**changes)
    assert isinstance(bad, BadRow), bad
    assert (bad.reason, bad.position) == (reason, 5)
    assert "in the row" in bad.error
    assert bad.key == getattr(read(**changes), "key"), "the same row makes the same dead letter"  # noqa: B009


def test_an_unparsable_row_is_a_bad_row() -> None:
    bad = parse_row(Row(9, {}, "1,HINDI", "2 values for 3 columns"), SHIPPED)
    assert isinstance(bad, BadRow)
    assert (bad.reason, bad.position) == (Dead.BAD_ROW, 9)
    assert bad.error == "2 values for 3 columns, in the row '1,HINDI'"
    assert bad.key != parse_row(Row(9, {}, "2,HINDI", "2 values for 3 columns"), SHIPPED).key


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=50))
@example("कथा-17")
@example("-1")
@example(str(2**63))
def test_any_other_id_is_a_name_with_an_integer_of_its_own(name: str) -> None:
    made = read(id=name, path="a.html")
    assert isinstance(made, Story), made
    if made.name is None:
        assert made.id == int(name)
    else:
        assert (made.name, made.id) == (name, parse_id(name))
        assert 2**62 <= made.id <= MAX_ID, "the integer must fit where indexes and databases keep ids"
        assert made.id != parse_id(f"{name}x")


def test_the_integer_of_a_name_never_changes() -> None:
    assert parse_id("कथा-17") == parse_id("कथा-17") == NUMBER_OF_NAME, "ledgers hold this integer"


def test_a_story_with_a_name_has_a_path() -> None:
    made = parse_row(Row(0, {"id": "my tale", "language": "ta"}, ""), SHIPPED, "{language}/{id}.txt")
    assert isinstance(made, Story) and made.path == "TAMIL/my tale.txt"
    assert read(id="../../etc/passwd").key.startswith("row:"), "a name cannot lead out of content.url"


@pytest.mark.parametrize("number", ["17", " 17 ", 17, 17.0, "0017"])
def test_an_id_is_an_integer(number: object) -> None:
    assert read(id=number).key == "17"
    assert read(id=str(MAX_ID)).key == str(MAX_ID)
    assert read(id=0).key == "0"


@pytest.mark.parametrize(("language", "code"), CODES.items())
def test_a_language_is_its_name_or_its_code_in_any_case(code: str, language: Language) -> None:
    three = SHIPPED[language].codes[1]
    tags = (f"{code}-IN", f"{code}_IN", three, f"{three.title()}-Latn", f"{code}-Deva-IN-x-web", f"{code}-356")
    for name in (language, language.lower(), language.title(), code, code.upper(), f" {code} ", *tags):
        made = read(language=name, title=TEXTS[language])
        assert isinstance(made, Story), made
        assert (made.language, made.title) == (language, TEXTS[language])


@pytest.mark.parametrize(("at", "milliseconds"), [
    ("2026-11-20T02:00:00Z", TWO), ("2026-11-20T07:30:00+05:30", TWO), ("2026-11-20 02:00:00.000", TWO),
    ("2026-11-20 02:00:00.000 UTC", TWO), ("2026-11-20 02:00:00", TWO), ("2026-11-20T02:00:00.123456Z", TWO + 123),
    ("2004-10-26T08:34:13.962Z", 1_098_779_653_962), ("1969-12-31T23:59:59.999Z", -1), ("2026-11-20", TWO - 7_200_000),
])  # fmt: skip
def test_a_time_is_milliseconds_since_1970(at: str, milliseconds: int) -> None:
    made = read(updated_at=at, published_at=at)
    assert isinstance(made, Story), made
    assert (made.updated_at, made.published_at) == (milliseconds, milliseconds)


@pytest.mark.parametrize("word", ["english-IN", "en-", "en--IN", "e", "en IN", "en-IN-IN", "tlh", "hi-Latin-India-x"])
def test_what_is_no_language_tag_is_no_language(word: str) -> None:
    with pytest.raises(ValueError, match="unknown language"):
        SHIPPED.find(word)


@pytest.mark.parametrize(
    "at", ["2026-W01-1", "2026W011", "20260101", "2026-001", "2026-01-01T10", "2026-01-01T10:00+0530", "2026-1-1"]
)
def test_other_notations_of_iso_8601_are_no_times(at: str) -> None:
    with pytest.raises(ValueError, match="RFC 3339"):
        parse_time(at)


@given(st.text(min_size=1).filter(str.strip) | st.integers(0, MAX_ID).map(str), st.text(" \t\u00a0"))
def test_an_id_is_the_same_at_every_door(listed: str, space: str) -> None:
    """A listing strips its values, a path and a body of JSON do not."""
    story = read(id=f"{space}{listed}{space}")
    if isinstance(story, Story):
        assert (story.id, story.name) == (parse_id(f"{space}{listed}{space}"), parse_name(f"{listed}{space}"))


def test_an_empty_cell_is_none_and_a_relative_path_stays() -> None:
    assert read(path="", author_id=" ", title=None, published_at="", updated_at="  ") == Story(17, HINDI, position=5)
    assert read(path="hi/17..html", author_id=7) == Story(17, HINDI, "hi/17..html", "7", position=5)


@given(st.sampled_from(["7", "7 b", "ß/7", "reference:x/7"]), st.sampled_from(["A", "कथा", "A b"]))
def test_a_work_has_a_name_and_an_id_that_no_story_can_have(listed: str, catalogue: str) -> None:
    row = Row(3, {"id": listed, "language": "hi", "catalogue": catalogue, "licence": " CC0 "}, "")
    made = parse_row(row, SHIPPED, "{id}.txt", of_reference=True)
    if "/" in listed:  # its page has a path of its own, which may not end so
        assert isinstance(made, Story) or made.reason is Dead.BAD_PATH
    if isinstance(made, Story):
        assert made.name == f"reference:{catalogue}/{listed}"
        assert made.id == parse_id(made.name) < 0
        assert (made.catalogue, made.licence, made.path) == (catalogue, "CC0", f"{listed}.txt")
        again = parse_row(Row(3, {"id": made.name, "language": "hi"}, ""), SHIPPED)
        assert isinstance(again, BadRow) and again.reason is Dead.BAD_ID
        assert parse_id(str(made.id)) == made.id, "its number does not lead to it"
        as_story = parse_row(Row(3, {"id": listed, "language": "hi", "catalogue": catalogue}, ""), SHIPPED)
        assert isinstance(as_story, BadRow) or (as_story.id >= 0 and as_story.catalogue is as_story.licence is None)


@pytest.mark.parametrize("catalogue", [None, "", "a/b", "a,b", "x" * 101, "a\tb"])
def test_a_work_needs_a_plain_catalogue(catalogue: str | None) -> None:
    row = Row(0, {"id": "1", "language": "hi", "catalogue": catalogue}, "")
    bad = parse_row(row, SHIPPED, of_reference=True)
    assert isinstance(bad, BadRow) and bad.reason is Dead.BAD_ROW and "catalogue" in bad.error


cells = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=9), st.sampled_from(["17", "hi", "a/b", "../b", "", " "])
)
odd_values = st.fixed_dictionaries(dict.fromkeys(COLUMNS, cells))
plain_values = st.fixed_dictionaries(
    {
        "id": st.integers(0, MAX_ID).map(str),
        "language": st.sampled_from(["hi", "TAMIL", " ml "]),
        "path": st.sampled_from(["", "a/b.html"]),
        "author_id": st.sampled_from(["", "7", "a\x00b"]),
        "title": st.sampled_from(["", " two words ", *TEXTS.values()]),
        "published_at": times.map(datetime.isoformat),
        "updated_at": st.sampled_from(["", "2026-11-19 02:00:00.000 UTC"]),
    }
)


@given(st.lists(st.one_of(plain_values, plain_values, plain_values, odd_values), max_size=20), st.integers(1, 8))
async def test_rows_parsed_in_columns_equal_those_parsed_one_by_one(values: list[dict[str, str]], block: int) -> None:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows(values)
    data = out.getvalue().encode()

    class InMemory:
        size = len(data)

        async def __call__(self, start: int, end: int) -> bytes:
            return data[start:end]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rows, "BLOCK_ROWS", block)
        blocks = parse_rows(read_csv_blocks(InMemory(), "list.csv"), SHIPPED, DEFAULT_KEY, of_reference=False)
        found = [row async for some in blocks for row in ([some] if isinstance(some, BadRow) else some.stories())]
    assert found == [parse_row(row, SHIPPED) async for row in read_csv(InMemory(), "list.csv")]
