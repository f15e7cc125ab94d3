"""Laws: rows are read as they were written, in chunks of any size; reading from a row's offset returns that row and the
rest; a bad line loses only itself; memory holds a few rows at most.

An array of JSON gives its objects, however it is laid out; what is no array ends in a row that says why.
"""

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.errors import Misuse
from neardup.records import format_count
from neardup.source import rows
from neardup.source.rows import JSON, Row, detect_kind, read_csv, read_json, read_jsonl

from tests.support.languages import TEXTS
from tests.support.paths import SAMPLES

HEADER = ["id", "language", "title"]
pieces = st.sampled_from([*"ab,;'\" \n\r\t\0\u0085\u2028\ufeff", '""', "\r\n", *TEXTS.values()])
cells = st.one_of(st.text(), st.lists(pieces, max_size=6).map("".join))
listings = st.lists(st.tuples(cells, cells, cells), max_size=12)
objects = st.lists(st.dictionaries(st.sampled_from(HEADER), cells | st.integers() | st.none()), max_size=12)
chunks = st.integers(16, 64)
styles: st.SearchStrategy[tuple[str, Literal[0, 1]]] = st.sampled_from(
    [("\r\n", csv.QUOTE_MINIMAL), ("\n", csv.QUOTE_ALL)]
)
VALUES = st.none() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=5), max_size=3)
ARRAYS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=8)
unhurried = settings(deadline=None)


class InMemory:
    """A file in memory; `asked` are the lengths of the ranges read."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)
        self.asked: list[int] = []

    async def __call__(self, start: int, end: int) -> bytes:
        assert 0 <= start < end <= self.size
        self.asked.append(end - start)
        return self._data[start:end]


def from_csv(held: InMemory, start: int = 0) -> AsyncIterator[Row]:
    return read_csv(held, "list.csv", start)


def read(held: InMemory, of: Callable[[InMemory, int], AsyncIterator[Row]], chunk: int, start: int = 0) -> list[Row]:
    async def all_rows() -> list[Row]:
        return [row async for row in of(held, start)]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rows, "CHUNK_BYTES", chunk)
        patched.setattr(rows, "BLOCK_ROWS", 1 + chunk % 4)
        return run(all_rows())


def run(work: Coroutine[None, None, list[Row]]) -> list[Row]:
    """The result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as ended:
        return list(ended.value)
    raise AssertionError("it suspends")


def as_csv(listing: Iterable[Iterable[object]], end: str, quoting: Literal[0, 1]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator=end, quoting=quoting).writerows([HEADER, *listing])
    return out.getvalue().encode()


def check(
    held: InMemory, of: Callable[[InMemory, int], AsyncIterator[Row]], chunk: int, want: list[dict[str, object]]
) -> None:
    """Assert that the rows are those wanted, and that reading can start at each."""
    found = read(held, of, chunk)
    assert [(dict(row.values), row.error) for row in found] == [(values, None) for values in want]
    edges = [*(row.position for row in found), held.size]
    longest = max((b - a for a, b in pairwise(edges)), default=0)
    assert max(held.asked[1:], default=0) <= max(chunk, 4 * longest), "memory held more than a few rows"
    for n, row in enumerate(found):
        assert read(held, of, chunk, row.position) == found[n:]
    assert read(held, of, chunk, held.size) == []


@unhurried
@given(listings, styles, chunks)
def test_csv_rows_are_read_as_they_were_written(
    listing: list[tuple[str, ...]], style: tuple[str, Literal[0, 1]], chunk: int
) -> None:
    check(InMemory(as_csv(listing, *style)), from_csv, chunk, [dict(zip(HEADER, row, strict=True)) for row in listing])


@pytest.mark.parametrize("separator", [",", "\t", ";"])
@given(listing=listings)
def test_the_separator_is_guessed(separator: str, listing: list[tuple[str, ...]]) -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=separator).writerows([HEADER, *listing])
    found = read(InMemory(out.getvalue().encode()), from_csv, 4096)
    assert [tuple(row.values.values()) for row in found] == listing


@unhurried
@given(objects, st.sampled_from(["\n", "\r\n", "\n \n"]), chunks, st.booleans())
def test_jsonl_rows_are_read_as_they_were_written(
    listing: list[dict[str, object]], end: str, chunk: int, ascii_only: bool
) -> None:
    lines = [json.dumps(row, ensure_ascii=ascii_only) + end for row in listing]
    check(InMemory("".join(lines).encode()), read_jsonl, chunk, listing)


@unhurried
@given(st.binary(), chunks)
def test_any_bytes_parse_to_good_or_bad_rows(noise: bytes, chunk: int) -> None:
    for held, of in ((InMemory(b"id,language\n" + noise), from_csv), (InMemory(noise), read_jsonl)):
        found = read(held, of, chunk)
        positions = [row.position for row in found]
        assert positions == sorted(set(positions))
        assert all(bool(row.values) != bool(row.error) or row.raw in ("{}", "\ufeff{}") for row in found)


@pytest.mark.parametrize("chunk", [16, 40, 4096])
def test_chunk_size_does_not_change_the_rows(chunk: int) -> None:
    path = SAMPLES / "manifest.csv"
    with path.open(encoding="utf-8", newline="") as file:
        want: list[dict[str, object]] = [dict(row) for row in csv.DictReader(file)]
    check(InMemory(path.read_bytes()), from_csv, chunk, want)


@pytest.mark.parametrize("chunk", [16, 48, 4096])
@pytest.mark.parametrize("quoted", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL], ids=["plain", "quoted"])
@pytest.mark.parametrize("column", range(3), ids=HEADER)
@pytest.mark.parametrize("line", [0, 3, 8])
def test_a_stray_quote_loses_only_its_own_line(chunk: int, quoted: Literal[0, 1], column: int, line: int) -> None:
    listing = [[n, "HINDI", "कथा"] for n in range(10)]
    lines = as_csv(listing, "\n", quoted).decode().splitlines(keepends=True)
    stray = [f"{line}", "HINDI", "कथा\n"]
    stray[column] = f'"{stray[column]}'
    lines[line + 1] = ",".join(stray)
    found = read(InMemory("".join(lines).encode()), from_csv, chunk)
    assert [row.values.get("id") for row in found] == [None if n == line else str(n) for n in range(10)]
    assert [bool(row.error) for row in found] == [n == line for n in range(10)]


@pytest.mark.parametrize("chunk", [16, 48, 4096])
@pytest.mark.parametrize("opened", ['"2,HINDI,कथा', '2,"HINDI,कथा'])
def test_a_quote_closed_lines_later_loses_the_line_it_opens(chunk: int, opened: str) -> None:
    lines = [",".join(HEADER), "1,HINDI,कथा", opened, "3,HINDI,कथा", '4,HINDI,कथा"', "5,HINDI,कथा\n"]
    found = read(InMemory("\n".join(lines).encode()), from_csv, chunk)
    assert [row.values.get("id") for row in found] == ["1", None, "3", "4", "5"]


@pytest.mark.parametrize("bad", ["1", "1,hi", "1,hi,a,b", ",,,", '1,"hi"'])
def test_a_wrong_number_of_values_is_an_error(bad: str) -> None:
    found = read(InMemory(f"id,language,title\n7,hi,a\n{bad}\n8,hi,b\n".encode()), from_csv, 4096)
    assert [row.values.get("id") for row in found] == ["7", None, "8"]
    assert found[1] == Row(25, {}, bad, f"{format_count(bad.count(',') + 1, 'value', 'values')} for 3 columns")


@pytest.mark.parametrize(
    "bad", ["[1]", "17", '"x"', "null", "{", '{"id": 1', "{'id': 1}", "x", "[" * 100_000, "9" * 5000]
)
def test_a_line_without_an_object_is_an_error(bad: str) -> None:
    found = read(InMemory(f'{{"id": 7}}\n{bad}\n\n{{"id": 8}}'.encode()), read_jsonl, 4096)
    assert [row.values.get("id") for row in found] == [7, None, 8]
    assert (found[1].error or "").startswith("not JSON: ")
    assert found[1].raw == bad[:500]


@pytest.mark.parametrize("header", ["\ufeffid,language\r\n", '"id","language"\n', " ID , Language \n", "language,id\n"])
def test_header_names_may_be_quoted_padded_or_marked(header: str) -> None:
    first = "7,hi" if not header.startswith("language") else "hi,7"
    found = read(InMemory(f"{header}{first}".encode()), from_csv, 16)
    assert [dict(row.values) for row in found] == [{"id": "7", "language": "hi"}]
    assert found[0].position == len(header.encode())


def test_a_byte_order_mark_is_ignored() -> None:
    assert read(InMemory('\ufeff{"id": 7}\n'.encode()), read_jsonl, 16)[0].values == {"id": 7}


@pytest.mark.parametrize(("held", "said"), [
    ("", "no column id and no column language"), ("\n1,hi\n", "no column id and no column language"),
    ("id,title\n", "no column language"), ("language,ids\n", "no column id"), ("1,HINDI\n", "no column id"),
])  # fmt: skip
def test_a_listing_that_lacks_a_column_is_refused(held: str, said: str) -> None:
    with pytest.raises(Misuse, match=rf"^list\.csv: {said}.* in its first line, which has "):
        read(InMemory(held.encode()), from_csv, 16)


@pytest.mark.parametrize(("held", "said"), [
    (b'{"id": 1}', "is JSON, not CSV"), (b"[1]", "is JSON, not CSV"),
    ("id,language\n".encode("utf-16"), "is not text in UTF-8"), ("id,language\n".encode("utf-16-le"), "is not text"),
])  # fmt: skip
def test_another_format_is_named(held: bytes, said: str) -> None:
    with pytest.raises(Misuse, match=rf"^list\.csv {said}"):
        read(InMemory(held), from_csv, 16)


def test_chunks_shrink_again_after_a_long_row() -> None:
    held = InMemory(as_csv([[n, "HINDI", "कथा" * (500 if n == 3 else 1)] for n in range(900)], "\n", csv.QUOTE_MINIMAL))
    assert len(read(held, from_csv, 64)) == 900
    assert max(held.asked[1:]) > 4500
    assert max(held.asked[-5:]) <= 64


def test_a_header_alone_lists_nothing() -> None:
    assert read(InMemory(b"id,language"), from_csv, 16) == read(InMemory(b""), read_jsonl, 16) == []


@given(
    st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=8),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.integers(1, 50),
    st.integers(0, 9),
)
def test_an_array_gives_its_objects(
    objects: list[dict[str, object]], indent: int | None, ascii_only: bool, chunk: int, start: int
) -> None:
    content = json.dumps(objects, indent=indent, ensure_ascii=ascii_only).encode()
    assert detect_kind(content, ".csv") == JSON
    found = read(InMemory(content), read_json, chunk, start)
    assert [(row.position, row.values, row.error) for row in found] == [
        (number, value, None) for number, value in enumerate(objects) if number >= start
    ]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b'[{"a": 1}', "the array has no end"),
        (b'[{"a": 1}, {"a": ', "not JSON"),
        (b'[{"a": 1}, 5]', "not JSON: not an object"),
        (b'[{"a": 1}, nothing]', "not JSON"),
        (b'[{"a": 1}, ' + b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_array_of_objects_is_said(content: bytes, error: str) -> None:
    first, bad = read(InMemory(content), read_json, 4096)
    assert (first.values, first.error) == ({"a": 1}, None)
    assert bad.error is not None and bad.error.startswith(error)


@pytest.mark.parametrize(
    ("head", "ending", "kind"),
    [
        (b"PAR1", ".csv", ".parquet"),
        (b'\xef\xbb\xbf[\n {"id"', ".csv", ".json"),
        (b"[id],[text]\n", ".csv", ".csv"),
        (b'\n{"id": 1}', ".json", ".jsonl"),
        (b"id,text\n", "", ".csv"),
        (b"broken", ".jsonl", ".jsonl"),
        (b"broken", ".parquet", ".parquet"),
    ],
)
def test_the_content_tells_the_kind_and_the_name_where_it_is_open(head: bytes, ending: str, kind: str) -> None:
    assert detect_kind(head, ending) == kind
