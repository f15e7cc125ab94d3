"""`neardup embed --import`: vectors made elsewhere are those of the same model, or they are refused."""

from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from neardup.core.text.chunks import cut_chunks
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.meaning.embedders import open_folder

from tests.support.command import Neardup, assert_one_line
from tests.support.embedded_samples import WORDS, held, known
from tests.support.paths import SAMPLES
from tests.support.samples import ROWS
from tests.support.tiny_model import make_model

EXTRACTION = Extraction("article .story, div.post-body", (".share", ".author-note"))  # that of the configuration


def text_of(row: dict[str, str]) -> str:
    page = SAMPLES / "stories" / row["language"] / f"{row['id']}.html"
    return extract_visible_text(page.read_text(encoding="utf-8"), EXTRACTION)


async def vectors_of_samples(folder: Path) -> list[dict[str, Any]]:
    """The rows of an import, made by the model in a folder."""
    model = open_folder(folder)
    return [{"id": row["id"], "vectors": (await model.embed(cut_chunks(text_of(row)))).tolist()} for row in ROWS]


def write(folder: Path, rows: list[dict[str, Any]]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), folder / "vectors.parquet")
    return folder / "vectors.parquet"


async def test_vectors_of_the_same_model_are_held(backfilled: Neardup) -> None:
    rows = await vectors_of_samples(backfilled.folder / "tiny")
    path = write(backfilled.folder, [*rows, {**rows[0], "id": "999999"}])
    done = backfilled("embed", "--import", str(path), "--json")
    assert done.code == 0, done.err
    assert held(backfilled) == known(backfilled)
    assert done.facts == {"imported": len(held(backfilled)), "unknown": len(rows) + 1 - len(held(backfilled))}
    assert backfilled("embed", "--json").facts["embedded"] == 0


async def test_vectors_of_another_model_are_refused(backfilled: Neardup) -> None:
    other = make_model(backfilled.folder / "other", WORDS, seed=9)
    path = write(backfilled.folder, await vectors_of_samples(other))
    assert_one_line(backfilled("embed", "--import", str(path)), 2, "another model, or other chunks")
    assert not held(backfilled)


@pytest.mark.parametrize(
    ("row", "code", "why"),
    [
        ({"id": "1", "vectors": [[1.0, 2.0]]}, 1, "row 1: 1 to 3 vectors of 32 dimensions"),
        ({"id": "1", "vectors": []}, 1, "row 1"),
        ({"id": "1", "vectors": [[0.0] * 32]}, 1, "no direction"),
        ({"id": "", "vectors": [[1.0] * 32]}, 1, "row 1: the id"),
        ({"id": "1", "vector": [1.0] * 32}, 2, "no column vectors"),
    ],
    ids=["dimensions", "none", "zeros", "id", "column"],
)
def test_a_bad_row_is_one_line(backfilled: Neardup, row: dict[str, Any], code: int, why: str) -> None:
    assert_one_line(backfilled("embed", "--import", str(write(backfilled.folder, [row]))), code, why)


def test_a_file_that_is_no_parquet_is_one_line(backfilled: Neardup) -> None:
    (backfilled.folder / "x").write_text("id,vectors")
    assert_one_line(backfilled("embed", "--import", str(backfilled.folder / "x")), 2, "not a Parquet file")
    assert_one_line(backfilled("embed", "--import", "x", "--since", "2026-01-01T00:00:00Z"), 2, "exclude")
