"""Laws: an array of JSON gives its objects, however it is laid out and cut into chunks, from any of them on; what is no
array ends in a row that says why.
"""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.source import rows
from neardup.source.rows import JSON, Row, detect_kind, read_json

VALUES = st.none() | st.integers() | st.text(max_size=20) | st.lists(st.text(max_size=5), max_size=3)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), max_size=8)


class Held:
    def __init__(self, content: bytes) -> None:
        self.content, self.size = content, len(content)

    async def __call__(self, start: int, end: int) -> bytes:
        return self.content[start:end]


async def read(content: bytes, start: int = 0, chunk: int = 16) -> list[Row]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "CHUNK_BYTES", chunk)
        return [row async for row in read_json(Held(content), start)]


@given(OBJECTS, st.sampled_from([None, 1]), st.booleans(), st.integers(1, 50), st.integers(0, 9))
async def test_an_array_gives_its_objects(
    objects: list[dict[str, object]], indent: int | None, ascii_only: bool, chunk: int, start: int
) -> None:
    content = json.dumps(objects, indent=indent, ensure_ascii=ascii_only).encode()
    assert detect_kind(content, ".csv") == JSON
    found = await read(content, start, chunk)
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
async def test_what_is_no_array_of_objects_is_said(content: bytes, error: str) -> None:
    first, bad = await read(content, chunk=4096)
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
