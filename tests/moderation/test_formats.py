"""Laws: each format, read by other libraries, returns the same pairs; and a hostile title stays plain text."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openpyxl  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from neardup.config.export import FORMATS, Format, format_of, target_of
from neardup.core.verify.tiers import kinds
from neardup.languages import LANGUAGES, SHIPPED
from neardup.moderation.export.columnar import write_parquet
from neardup.moderation.export.files import write_csv, write_jsonl
from neardup.moderation.export.guard import guarded
from neardup.moderation.export.page import write_page
from neardup.moderation.export.pairs import COLUMNS, IDS, TIMES, ExportRow
from neardup.moderation.export.workbook import MAX_ROWS, write_xlsx
from neardup.moderation.templating import visible
from neardup.records import Language
from neardup.timestamps import rfc3339
from openpyxl.utils.escape import unescape  # type: ignore[import-untyped]
from pyarrow import parquet  # type: ignore[import-untyped]
from selectolax.lexbor import LexborHTMLParser

from tests.moderation.test_guard import would_run
from tests.support.hostile_titles import TITLES
from tests.support.languages import CODES, TEXTS

titles = st.none() | st.text(st.characters(codec="utf-8"), min_size=1) | st.sampled_from(TITLES)
ids = st.integers(0, 2**63 - 1)
share = st.floats(0, 1)
times = st.none() | st.integers(-2_208_988_800_000, 4_102_444_800_000).map(rfc3339)
pairs_of = st.fixed_dictionaries(
    dict.fromkeys(COLUMNS, st.none())
    | dict.fromkeys(("flag_id", "story_id", "matched_id"), ids)
    | dict.fromkeys(("earlier_id", "cluster_id"), st.none() | ids)
    | dict.fromkeys(("jaccard", "containment", "matched_containment"), share)
    | dict.fromkeys(TIMES, times)
    | {
        "kind": st.sampled_from(kinds()),
        "language": st.sampled_from(LANGUAGES),
        "hamming": st.integers(0, 128),
        "longest_run_words": st.none() | st.integers(0, 10**6),
        "story_title": titles,
        "matched_title": titles,
        "story_author_id": titles,
        "same_author": st.none() | st.booleans(),
        "estimated": st.booleans(),
        "status": st.sampled_from(["open", "not_similar"]),
        "context": st.none() | st.just("template"),
    }
)


def pair(**known: object) -> ExportRow:
    required = {"flag_id": 1, "kind": "exact", "language": "HINDI", "story_id": 2, "matched_id": 1, "hamming": 0}
    return dict.fromkeys(COLUMNS) | required | {"estimated": False, "status": "open"} | known


ATTACKING = [pair(story_title=title, matched_title=title, story_author_id=title) for title in TITLES]


def page(path: Path, pairs: Iterable[ExportRow], chosen: int = 0) -> None:
    rows = list(pairs)
    tally = Counter((row["language"], row["kind"]) for row in rows)
    write_page(path, rows, tally, chosen or len(rows), {}, registry=SHIPPED)


def read_csv(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def read_xlsx(path: Path) -> list[list[Any]]:
    book = openpyxl.load_workbook(path)
    try:
        return [list(row) for row in book.active.rows]
    finally:
        book.close()


def of_xlsx(text: str) -> str:
    """The part of a text that XlsxWriter writes to a cell."""
    text = f" {text}" if text.startswith("<r>") else text
    return text.translate({0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}).encode("utf-16-le")[:65534].decode("utf-16-le", "ignore")


def of_csv(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else guarded(value) if isinstance(value, str) else str(value)


@settings(deadline=None)
@given(st.lists(pairs_of, max_size=5))
@example(ATTACKING)
def test_every_format_returns_the_same_pairs(pairs: list[ExportRow]) -> None:
    pairs = [{column: one[column] for column in COLUMNS} for one in pairs]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pairs"

        write_jsonl(path, pairs)
        assert read_jsonl(path) == pairs

        write_csv(path, pairs)
        assert read_csv(path) == [{column: of_csv(value) for column, value in one.items()} for one in pairs]

        write_parquet(path, pairs)
        wanted = [{n: datetime.fromisoformat(v) if n in TIMES and v else v for n, v in one.items()} for one in pairs]
        assert parquet.read_table(path).to_pylist() == wanted

        write_xlsx(path.with_suffix(".xlsx"), pairs)
        header, *rows = read_xlsx(path.with_suffix(".xlsx"))
        assert [cell.value for cell in header] == list(COLUMNS)
        for one, row in zip(pairs, rows, strict=True):
            for (column, value), cell in zip(one.items(), row, strict=True):
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
        write_csv(path, pairs)
        for row in read_csv(path):
            assert not any(map(would_run, row.values())), row
        for cell in re.split(
            "[;\t\r\n]", path.read_bytes().decode()
        ):  # as Excel splits it where the decimal mark is a comma
            assert not would_run(cell), ascii(cell)


@settings(deadline=None)
@given(st.lists(pairs_of, min_size=1, max_size=5))
@example(ATTACKING)
def test_titles_add_no_markup_to_the_page(pairs: list[ExportRow]) -> None:
    plain = [one | dict.fromkeys(("story_title", "matched_title", "story_author_id"), "t") for one in pairs]
    titled = [one | {n: one[n] or "t" for n in ("story_title", "matched_title", "story_author_id")} for one in pairs]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.html"
        page(path, plain)
        wanted = _elements(path)
        page(path, titled)
        assert _elements(path) == wanted, "a title added an element or an attribute"
        tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
    shown = [node.text() for node in tree.css("h3 bdi")]
    assert shown == [visible(one[side] or "(no title)") for one in titled for side in ("matched_title", "story_title")]


def _elements(path: Path) -> list[tuple[str | None, list[str]]]:
    tree = LexborHTMLParser(path.read_text(encoding="utf-8"))
    assert tree.root is not None
    return [(node.tag, sorted(node.attributes)) for node in tree.root.traverse()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_page_is_self_contained_and_names_languages(tmp_path: Path, language: Language) -> None:
    path = tmp_path / "pairs.html"
    page(path, [pair(language=language, story_title=TEXTS[language], matched_title="<script>")])
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"""<script|(?:src|action|url)\s*[=(]|href=(?!"#)|@import""", text), "it makes a request"
    tree = LexborHTMLParser(text)
    [policy] = [node.attributes["content"] or "" for node in tree.css("meta[http-equiv=Content-Security-Policy]")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert [node.attributes["lang"] for node in tree.css("h3 bdi")] == [CODES[language]] * 2
    assert [node.text() for node in tree.css("h3 bdi")] == ["<script>", TEXTS[language]]
    assert tree.css_first(f"#language-{language}") is not None


def test_page_shows_the_figures_in_words(tmp_path: Path) -> None:
    path = tmp_path / "pairs.html"
    one = pair(
        kind="partial", hamming=17, jaccard=0.11, containment=0.81, matched_containment=0.119, longest_run_words=214,
        story_published_at="2026-11-23T12:00:00Z", matched_published_at="2026-11-20T11:00:00Z", earlier_id=1,
        same_author=False, cluster_id=1, cluster_size=3, status="not_similar", context="template",
    )  # fmt: skip
    page(path, [one])
    [article] = LexborHTMLParser(path.read_text(encoding="utf-8")).css("article")
    text = " ".join(article.text().split())
    for words in (
        "Partial copy: a large part of one is contained in the other",
        "12 % of A's word pairs are also in B; 81 % of B's in A",
        "Jaccard similarity: 0.11", "The longest shared run has 214 words", "17 of 128 bits differ",
        "A was published 3 days before B", "Two different authors wrote them", "In a cluster of 3 stories around 1",
        "not similar", "Matches stories with the verdict template",
    ):  # fmt: skip
        assert words in text, f"{words!r} is not in {text!r}"


def test_page_says_if_it_does_not_show_all_pairs(tmp_path: Path) -> None:
    sentences = "The worst 1 of 50,000: select fewer, or use another format", "There are no flagged pairs."
    for pairs, chosen, expected in (
        ([pair()], 1, (False, False)),
        ([pair()], 50_000, (True, False)),
        ([], 0, (False, True)),
    ):
        page(tmp_path / "pairs.html", pairs, chosen)
        text = (tmp_path / "pairs.html").read_text(encoding="utf-8")
        assert tuple(sentence in text for sentence in sentences) == expected


def test_byte_order_mark_is_optional(tmp_path: Path) -> None:
    for bom in (False, True):
        write_csv(tmp_path / "pairs.csv", [pair(story_title="கதை")], bom=bom)
        assert (tmp_path / "pairs.csv").read_bytes().startswith(b"\xef\xbb\xbf") is bom
        assert read_csv(tmp_path / "pairs.csv")[0]["story_title"] == "கதை"


def test_sheet_has_a_frozen_header_and_a_filter(tmp_path: Path) -> None:
    write_xlsx(tmp_path / "pairs.xlsx", [pair(), pair()])
    sheet = openpyxl.load_workbook(tmp_path / "pairs.xlsx").active
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == (
        "A2",
        f"A1:{openpyxl.utils.get_column_letter(len(COLUMNS))}3",
    )
    assert MAX_ROWS == 2**20 - 1


@pytest.mark.parametrize(("target", "want"), [
    *((f"a/b.{name}", name) for name in FORMATS), ("s3://b/k/FLAGS.XLSX", "xlsx"), ("a.htm", "html"),
    ("a.ndjson", "jsonl"), ("a.csv.gz", None), ("csv", None), ("s3://b.csv/k", None),
])  # fmt: skip
def test_format_follows_from_the_file_name(target: str, want: Format | None) -> None:
    named = target_of(target)
    assert named is not None
    assert format_of(named) == want


def test_invalid_s3_urls_are_rejected() -> None:
    for target in ("s3://", "s3://bucket", "s3://bucket/", "s3:///key", "s3://b/k/", "s3://b/k?x#y"):
        with pytest.raises(ValueError, match="not s3://BUCKET/KEY"):
            target_of(target)
