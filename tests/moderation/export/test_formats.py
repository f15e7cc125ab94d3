"""Laws: each format, read by other libraries, returns the same pairs.  No cell of a CSV file begins a formula, however
a spreadsheet splits and trims the file: the text is unchanged except for added apostrophes, and harmless text
altogether.
"""

import re
import sys
import unicodedata
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import openpyxl  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES
from neardup.moderation.export.formats import MAX_ROWS, guard_text, write_csv, write_jsonl, write_parquet, write_xlsx
from neardup.moderation.export.tables import IDS, PAIR_COLUMNS, PAIRS, TIMES, ExportRow
from neardup.option_values import FORMATS, Format, format_of, read_target
from neardup.records import Language
from openpyxl.utils.escape import unescape  # type: ignore[import-untyped]
from pyarrow import parquet  # type: ignore[import-untyped]

from tests.support.exported_pairs import (
    ATTACKING,
    TITLES,
    of_csv,
    of_xlsx,
    pair,
    pairs_of,
    read_csv,
    read_jsonl,
    read_xlsx,
)
from tests.support.languages import TEXTS

SIGNS = "=+-@"
hostile = st.text(st.sampled_from("=+-@＝＋－＠﹢⁻−a'\";,\t\r\n \ufeff\u200b\u202e\u0301\u00a0\x00\x0bक"), max_size=12)
texts = hostile | st.text(st.characters(codec="utf-8")) | st.sampled_from(TITLES)


def would_run(cell: str) -> bool:
    """Whether the most permissive spreadsheet would run a cell as a formula."""
    seen = [c for c in cell if c != '"' and unicodedata.category(c)[0] not in "CMZ"]
    return bool(seen) and unicodedata.normalize("NFKC", seen[0])[0] in f"{SIGNS}\u2212"


@given(texts)
@example("=")
@example(';""=1')
def test_no_part_of_a_cell_runs_as_a_formula(text: str) -> None:
    cell = guard_text(text)
    for part in (cell, *re.split("[;\t\r\n]", cell)):
        assert not would_run(part), f"{cell!a} would run {part!a}"


@given(texts)
def test_guarding_only_adds_apostrophes(text: str) -> None:
    assert guard_text(text).replace("'", "") == text.replace("'", "")


@given(texts)
def test_guarding_is_idempotent(text: str) -> None:
    assert guard_text(guard_text(text)) == guard_text(text)


def test_compatibility_forms_of_signs_are_guarded() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if not 0xD800 <= code < 0xE000 and unicodedata.normalize("NFKC", character)[0] in SIGNS:
            assert guard_text(f"{character}1") == f"'{character}1", ascii(character)


@pytest.mark.parametrize("language", LANGUAGES)
def test_prose_is_unchanged(language: Language) -> None:
    for text in (TEXTS[language], f"{TEXTS[language]} - 2", f"({TEXTS[language]}; 1 + 1 = 2)", f"“{TEXTS[language]}”"):
        assert guard_text(text) == text


@settings(deadline=None)
@given(st.lists(pairs_of, max_size=5))
@example(ATTACKING)
def test_every_format_returns_the_same_pairs(pairs: list[ExportRow]) -> None:
    pairs = [{column: pair[column] for column in PAIR_COLUMNS} for pair in pairs]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pairs"

        write_jsonl(path, pairs)
        assert read_jsonl(path) == pairs

        write_csv(path, pairs, PAIRS)
        assert read_csv(path) == [{column: of_csv(value) for column, value in pair.items()} for pair in pairs]

        with_names = any(isinstance(pair[column], str) for pair in pairs for column in PAIRS.story_ids)
        write_parquet(path, pairs, PAIRS, with_names=with_names)
        wanted = [
            {n: datetime.fromisoformat(v) if n in TIMES and v else v for n, v in pair.items()}
            | {n: str(pair[n]) for n in PAIRS.story_ids if with_names and pair[n] is not None}
            for pair in pairs
        ]
        assert parquet.read_table(path).to_pylist() == wanted

        write_xlsx(path.with_suffix(".xlsx"), pairs, PAIRS)
        header, *rows = read_xlsx(path.with_suffix(".xlsx"))
        assert [cell.value for cell in header] == list(PAIR_COLUMNS)
        for pair, row in zip(pairs, rows, strict=True):
            for (column, value), cell in zip(pair.items(), row, strict=True):
                assert cell.data_type != "f", f"{column} is a formula: {cell.value!a}"
                if isinstance(value, str):
                    assert unescape(cell.value or "") == of_xlsx(value)
                elif column in IDS:
                    assert cell.value == (None if value is None else str(value)), "a spreadsheet would round it"
                else:
                    assert cell.value == (pytest.approx(value, rel=1e-15) if isinstance(value, float) else value)
                    assert isinstance(cell.value, bool) == isinstance(value, bool), column


@settings(deadline=None)
@given(st.lists(pairs_of, max_size=5))
@example(ATTACKING)
def test_no_csv_cell_runs_as_a_formula(pairs: list[ExportRow]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        write_csv(path, pairs, PAIRS)
        for row in read_csv(path):
            assert not any(map(would_run, row.values())), row
        for cell in re.split(
            "[;\t\r\n]", path.read_bytes().decode()
        ):  # as Excel splits it where the decimal mark is a comma
            assert not would_run(cell), ascii(cell)


def test_byte_order_mark_is_optional(tmp_path: Path) -> None:
    for bom in (False, True):
        write_csv(tmp_path / "pairs.csv", [pair(story_title="கதை")], PAIRS, bom=bom)
        assert (tmp_path / "pairs.csv").read_bytes().startswith(b"\xef\xbb\xbf") is bom
        assert read_csv(tmp_path / "pairs.csv")[0]["story_title"] == "கதை"


def test_sheet_has_a_frozen_header_and_a_filter(tmp_path: Path) -> None:
    write_xlsx(tmp_path / "pairs.xlsx", [pair(), pair()], PAIRS)
    sheet = openpyxl.load_workbook(tmp_path / "pairs.xlsx").active
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == (
        "A2",
        f"A1:{openpyxl.utils.get_column_letter(len(PAIR_COLUMNS))}3",
    )
    assert MAX_ROWS == 2**20 - 1


@pytest.mark.parametrize(("target", "want"), [
    *((f"a/b.{name}", name) for name in FORMATS), ("s3://b/k/FLAGS.XLSX", "xlsx"), ("a.htm", "html"),
    ("a.ndjson", "jsonl"), ("a.csv.gz", None), ("csv", None), ("s3://b.csv/k", None),
])  # fmt: skip
def test_format_follows_from_the_file_name(target: str, want: Format | None) -> None:
    named = read_target(target)
    assert named is not None
    assert format_of(named) == want


def test_invalid_s3_urls_are_rejected() -> None:
    for target in ("s3://", "s3://bucket", "s3://bucket/", "s3:///key", "s3://b/k/", "s3://b/k?x#y"):
        with pytest.raises(ValueError, match="not s3://BUCKET/KEY"):
            read_target(target)
