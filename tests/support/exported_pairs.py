"""Pairs as an export has them, generated or made by hand, with titles that attack what displays them, and readers of
the formats.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import openpyxl  # type: ignore[import-untyped]
from hypothesis import strategies as st
from neardup.core.languages import LANGUAGES, SHIPPED
from neardup.core.verify.tiers import list_kinds
from neardup.ledger.case_queue import FlaggedCase
from neardup.ledger.similarities import Similarity
from neardup.moderation.export.formats import guard_text
from neardup.moderation.export.page import ListedCase, Tally, write_page
from neardup.moderation.export.tables import PAIR_COLUMNS, TIMES, ExportRow
from neardup.records import NO_SPANS, format_time

TITLES = (
    "<script>alert(1)</script>",
    "</style></title><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "{{ 7 * 7 }}{% for x in y %}",
    "]]><!-- --><svg onload=alert(1)>",
    "&lt;b&gt;&amp;#0;",
    "=1+1",
    '=HYPERLINK("http://example.invalid","x")',
    "+cmd|'/C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "  =1+1",
    "\ufeff=1+1",
    "\u200b\u2060\u00ad=1+1",
    "\u202e=1+1",
    "\u3000＝1+1",
    "＋1",
    "－1",
    "＠SUM(1)",
    "﹦1",
    "\u2212 1+1",
    "a;=1+1",
    'a;"=1+1"',
    "a\n=1+1",
    "a\r=1+1",
    "a\t\ufeff+1+1",
    '","=1+1","',
    "\t=1",
    "<r><t>rich</t></r>",
    "<r></t></is></c><c r='A9' t='str'><f>1+1</f><v>2</v></c></r>",
    f"<r>{'x' * 32_760}</r> and what is cut off behind it",
    "_x003D_1+1",
    "http://example.invalid/\u202egpj.exe",
    "\u202eright to left, \u2066never closed",
    "\x00nul\x00",
    "\x01\x08\x0b\x0c\x1b[2J\x7f\x85\x9b",
    "\ufffe\uffff\ufdd0\U0001fffe",
    "a\r\nb\rc\u2028d\u2029e",
    "🧨👩‍👩‍👧‍👦" * 50,
    "क" * 10_000,
    "്‍ാ" * 100,
    "x" * 40_000,
    "   ",
)


titles = st.none() | st.text(st.characters(codec="utf-8"), min_size=1) | st.sampled_from(TITLES)
numbers = st.integers(0, 2**63 - 1)
ids = numbers | st.text(st.characters(codec="utf-8"), min_size=1) | st.sampled_from(TITLES)
share = st.floats(0, 1)
times = st.none() | st.integers(-2_208_988_800_000, 4_102_444_800_000).map(format_time)
pairs_of = st.fixed_dictionaries(
    dict.fromkeys(PAIR_COLUMNS, st.none())
    | {"flag_id": numbers}
    | dict.fromkeys(("story_id", "matched_id"), ids)
    | dict.fromkeys(("earlier_id", "cluster_id"), st.none() | ids)
    | dict.fromkeys(("jaccard", "containment", "matched_containment"), share)
    | dict.fromkeys(TIMES.intersection(PAIR_COLUMNS), times)
    | {
        "kind": st.sampled_from(list_kinds()),
        "language": st.sampled_from(LANGUAGES),
        "hamming": st.integers(0, 128),
        "copied_words": st.none() | st.integers(0, 10**6),
        "longest_run_words": st.none() | st.integers(0, 10**6),
        "story_title": titles,
        "matched_title": titles,
        "story_author_id": titles,
        "story_path": titles,
        "matched_path": titles,
        "same_author": st.none() | st.booleans(),
        "estimated": st.booleans(),
        "status": st.sampled_from(["open", "not_similar"]),
        "context": st.none() | st.just("template"),
    }
)


def pair(**known: object) -> ExportRow:
    required = {"flag_id": 1, "kind": "exact", "language": "HINDI", "story_id": 2, "matched_id": 1, "hamming": 0}
    return dict.fromkeys(PAIR_COLUMNS) | required | {"estimated": False, "status": "open"} | known


ATTACKING = [pair(story_title=title, matched_title=title, story_author_id=title) for title in TITLES]


def page(path: Path, pairs: Iterable[ExportRow], chosen: Tally | None = None) -> None:
    """Write the page of these pairs, each a case, of which `chosen` were selected; by default as many as there are."""
    cases = [_case(pair) for pair in pairs]
    tally = Counter((case.case.language, case.case.kind) for case in cases)
    write_page(path, cases, tally if chosen is None else chosen, {}, registry=SHIPPED)


def _case(row: ExportRow) -> ListedCase:
    story_id = row["story_id"]
    found = Similarity(
        story_id,
        language=row["language"],
        title=row["story_title"] or row["story_path"] or str(story_id),
        path=row["story_path"],
        author_id=row["story_author_id"],
        published_at=None,
        words=100,
        copied_words=0,
        similarity=0.0,
        spans=NO_SPANS,
        sources=(),
    )
    return ListedCase(FlaggedCase(story_id, story_id, row["language"], row["kind"], 1), found, [row], 0)


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
    return "" if value is None else guard_text(value) if isinstance(value, str) else str(value)
