"""Law: a pair has one similarity, whoever is asked: a run, each format of an export, the comparison, the check, the
scan, the service and the API of the desk.  The law of one answer draws pairs; here is one of each kind, at every door.
"""

import csv
import json
from collections.abc import Callable
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from neardup.config import load
from neardup.core.verify.tiers import list_kinds
from neardup.ledger import cases, connect
from neardup.moderation.desk.api import read_case
from neardup.records import format_percent
from pyarrow import parquet  # type: ignore[import-untyped]

from tests.support.command import Neardup, embedded
from tests.support.exported_pairs import read_xlsx
from tests.support.languages import BENGALI, ENGLISH, GUJARATI, HINDI, MARATHI, TELUGU
from tests.support.sample_texts import STORIES, transliterated
from tests.support.service import http_service

Doors = dict[str, float]
PAGE = "<article><div class=story><p>{}</p></div></article>"


def with_every(nth: int, text: str, other: str) -> str:
    """A text whose every nth word is one of another text."""
    others = cycle(other.split())
    return " ".join(next(others) if n % nth == nth - 1 else word for n, word in enumerate(text.split()))


def first_words(text: str, count: int) -> str:
    return " ".join(text.split()[:count])


PAIRS = {  # kind -> the languages and the texts of a source and of its copy
    "exact": (MARATHI, STORIES[MARATHI][0], MARATHI, STORIES[MARATHI][0]),
    "near": (
        BENGALI,
        STORIES[BENGALI][1],
        BENGALI,
        STORIES[BENGALI][1].replace(STORIES[BENGALI][1].split()[50], "xx", 1),
    ),
    "similar": (BENGALI, STORIES[BENGALI][0], BENGALI, with_every(8, STORIES[BENGALI][0], STORIES[BENGALI][2])),
    "partial": (HINDI, STORIES[HINDI][0], HINDI, f"{first_words(STORIES[HINDI][0], 170)} {STORIES[HINDI][1]}"),
    "transliterated": (GUJARATI, STORIES[GUJARATI][0], TELUGU, transliterated(STORIES[GUJARATI][0], GUJARATI, TELUGU)),
    "passage": (
        ENGLISH,
        STORIES[ENGLISH][0],
        ENGLISH,
        f"{STORIES[ENGLISH][1]} {first_words(STORIES[ENGLISH][0], 110)} {STORIES[ENGLISH][2]}",
    ),
    "rewritten": (HINDI, STORIES[HINDI][3], HINDI, with_every(3, STORIES[HINDI][3], STORIES[HINDI][5])),
}


@pytest.fixture
def flagged(make_neardup: Callable[..., Neardup], tmp_path: Path) -> Neardup:
    """The pairs after a backfill: a source and its copy, named by their kind."""
    rows = []
    for kind, (*source, language, text) in PAIRS.items():
        for side, day, (spoken, written) in (("source", 1, source), ("copy", 2, (language, text))):
            name = f"{kind}-{side}"
            (tmp_path / "pages" / spoken).mkdir(parents=True, exist_ok=True)
            (tmp_path / "pages" / spoken / f"{name}.html").write_text(PAGE.format(written), encoding="utf-8")
            published = f"2026-01-0{day}"
            rows.append({"id": name, "language": spoken, "author_id": side, "title": name, "published_at": published})
    listed = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "list.jsonl").write_text(listed, encoding="utf-8")
    neardup = make_neardup(embedded(manifest=tmp_path / "list.jsonl", stories=tmp_path / "pages"))
    ended = neardup("backfill")
    assert ended.code == 0, ended.err
    return neardup


def exported(neardup: Neardup) -> dict[str, dict[str, dict[str, Any]]]:
    """The rows of each format, by the kind that names the stories."""
    out = neardup.folder / "out"
    out.mkdir()
    for form in ("csv", "jsonl", "xlsx", "parquet"):
        assert neardup("export", "-o", str(out / f"flags.{form}")).code == 0
    header, *cells = ([cell.value for cell in row] for row in read_xlsx(out / "flags.xlsx"))
    tables: dict[str, list[dict[str, Any]]] = {
        "csv": list(csv.DictReader((out / "flags.csv").read_text(encoding="utf-8").splitlines())),
        "jsonl": [json.loads(line) for line in (out / "flags.jsonl").read_text(encoding="utf-8").splitlines()],
        "xlsx": [dict(zip(header, row, strict=True)) for row in cells],
        "parquet": parquet.read_table(out / "flags.parquet").to_pylist(),
    }
    return {
        form: {row["kind"]: row for row in rows if row["matched_id"] == f"{row['kind']}-source"}
        for form, rows in tables.items()
    }


def of_match(matches: list[dict[str, Any]], kind: str) -> float:
    [found] = [match["similarity"] for match in matches if match["story_id"] == f"{kind}-source"]
    return float(found)


def of_scan(rows: list[dict[str, Any]], *pair: str) -> float:
    """The similarity of two files, which a scan names by their paths."""
    [found] = [row for row in rows if {Path(row[f"{side}_title"]).stem for side in ("story", "matched")} == set(pair)]
    return float(found["similarity"])


async def of_service(neardup: Neardup) -> dict[str, Doors]:
    """What the service says of each pair, by kind."""
    answers: dict[str, Doors] = {}
    async with http_service(load(neardup.folder / "config.toml")) as (client, _):

        async def send(method: str, path: str, **body: Any) -> dict[str, Any]:
            async with client.request(method, path, json=body or None) as answer:
                assert answer.status == 200, await answer.text()
                return dict(await answer.json())

        for kind, (_, _, language, text) in PAIRS.items():
            copy = f"{kind}-copy"
            checked = await send("POST", "/v1/check", language=language, text=text, id=copy, author_id="copy")
            assert checked["left_out"] == copy, "the checked story itself is not said to be left out"
            recorded = await send("GET", f"/v1/stories/{copy}/matches")
            sides = {"a": {"story_id": f"{kind}-source"}, "b": {"story_id": copy}}
            answers[kind] = {
                "service: check": of_match(checked["matches"], kind),
                "service: matches": of_match(recorded["matches"], kind),
                "service: compare": (await send("POST", "/v1/compare", **sides))["similarity"],
            }
    return answers


def of_desk(neardup: Neardup) -> dict[str, float]:
    with closing(connect(neardup.folder / "neardup.db")) as db:
        cases.refresh(db)
        ids = [case_id for (case_id,) in db.execute("SELECT case_id FROM cases")]
        found = [case for case_id in ids if (case := read_case(db, case_id))]
    pairs = [pair for case in found for pair in case.evidence]
    return {pair.kind: pair.similarity for pair in pairs if pair.matched_id == f"{pair.kind}-source"}


async def test_a_pair_of_each_kind_has_one_similarity_at_every_door(flagged: Neardup, tmp_path: Path) -> None:
    formats, desk, service = exported(flagged), of_desk(flagged), await of_service(flagged)
    assert formats["jsonl"].keys() == set(list_kinds()) - {"serial"}, "the texts do not make a pair of each kind"
    scanned = [
        json.loads(line) for line in flagged("scan", str(tmp_path / "pages"), "--format", "jsonl").out.splitlines()
    ]
    page = flagged("export", "--format", "html").out
    for kind, (_, _, language, _) in PAIRS.items():
        a, b = f"{kind}-source", f"{kind}-copy"
        own_page = str(tmp_path / "pages" / language / f"{b}.html")
        checked = flagged("check", own_page, "--language", language, "--json").facts
        assert checked["left_out"] == b
        doors: Doors = {
            **{form: float(rows[kind]["similarity"]) for form, rows in formats.items()},
            **service[kind],
            "desk": desk[kind],
            "compare": flagged("compare", a, b, "--json").facts["similarity"],
            "check": of_match(checked["matches"], kind),
            "scan": of_scan(scanned, a, b),
        }
        values = {round(similarity, 12) for similarity in doors.values()}  # a workbook has 15 digits
        assert len(values) == 1, f"{kind}: the similarities differ: {doors}"
        shown = format_percent(doors["jsonl"])
        assert f"similarity {shown}" in flagged("compare", a, b).out, f"{kind}: compare does not print {shown}"
        assert shown in flagged("check", own_page, "--language", language).out, f"{kind}: check does not print {shown}"
        assert f"Similarity: {shown}" in page, f"{kind}: the page of the export does not show {shown}"
