"""A tier is added by one row of the table: storage, order, pages, metrics and suppression all read it there."""

import csv
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path

import pytest
from neardup.config import Detection, Thresholds
from neardup.core.languages import SHIPPED
from neardup.core.verify import tiers
from neardup.core.verify.tiers import PARTIAL, SIMILAR, Tier, find_kind
from neardup.insights.what_if import compare_thresholds
from neardup.ledger import connect, flags, verdicts
from neardup.ledger.flags import Selection
from neardup.moderation.export.write import ExportOptions, write
from neardup.pipeline.gauges import _set_verdict_gauges
from neardup.records import Signals, Verdict
from neardup.telemetry.metrics import VERDICTS

from tests.support.builders import commit, fingerprinted, flag_pair
from tests.support.desk_client import desk, post

QUOTED = Tier(
    kind="quoted",
    severity=350,
    compares="words",
    nominated_by=("passages",),
    holds=lambda signals, _: signals.extra.get("quoted_lines", 0) >= 5,
    strength=lambda signals: signals.extra["quoted_lines"],
    is_of_whole_texts=False,
    joins_clusters=lambda longer, shorter: False,
    reuse_expected=False,
    label="Quoted at length",
    meaning="many lines in a row are quoted",
    evidence="{quoted_lines} lines, {quoted_share} of the text",
    tone="mild",
)
FEW_LINES, MANY_LINES = (Signals(60, extra={"quoted_lines": lines, "quoted_share": 0.25}) for lines in (5, 50))
ALIKE = Signals(40, False, 0.6, 0.7, 0.7)
PAIRS = {
    (1, 2): (PARTIAL, ALIKE),
    (3, 4): ("quoted", FEW_LINES),
    (5, 6): ("quoted", MANY_LINES),
    (7, 8): (SIMILAR, ALIKE),
}
EXPECTED_ORDER = [(7, 8), (5, 6), (3, 4), (1, 2)]

SCRIPT = """
from msgspec.structs import replace
from neardup.core.verify import tiers
tiers.TIERS = (*tiers.TIERS, replace(tiers.TIERS[0], kind="quoted", severity=999))

from prometheus_client import generate_latest
from neardup.cli.decide import export
from neardup.core.languages import LANGUAGES
from neardup.telemetry.metrics import create_series
create_series(LANGUAGES, tiers.list_kinds())
assert b'neardup_flags_total{kind="quoted",language="HINDI"} 0.0' in generate_latest()
assert "quoted" in next(option for option in export.params if option.name == "kinds").type.choices
"""


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """A ledger of PAIRS, with the made-up tier in the table."""
    table = (*tiers.TIERS[:-1], QUOTED, tiers.TIERS[-1])
    monkeypatch.setattr(tiers, "TIERS", table)
    monkeypatch.setitem(tiers.BY_KIND, QUOTED.kind, QUOTED)
    monkeypatch.setattr(tiers, "BY_WORDS", tuple(tier for tier in table if tier.compares == "words"))
    with closing(connect(tmp_path / "neardup.db")) as db:
        for pair, (kind, signals) in PAIRS.items():
            flag_pair(db, *pair, kind, signals=signals)
        yield db


def decide(db: sqlite3.Connection, pair: tuple[int, int], verdict: Verdict) -> None:
    flag = flags.read_pair(db, *pair)
    assert flag is not None
    verdicts.decide(db, [flag["flag_id"]], verdict, "", "Asha", verdicts.identify_state(db, [flag["flag_id"]]))


def test_new_tier_decides_by_its_own_signals(db: sqlite3.Connection) -> None:
    assert find_kind(FEW_LINES, Thresholds()) == "quoted"
    assert find_kind(ALIKE, Thresholds()) == SIMILAR
    kinds = compare_thresholds(db, Detection(), 0, 2**62)["by_language"]["HINDI"]
    assert kinds["quoted"] == {"flags": 2, "replayed": 2, "plus": 0, "minus": 0}, "the ledger returns its signals"


def test_new_tier_takes_its_place_in_queue_and_exports(db: sqlite3.Connection, tmp_path: Path) -> None:
    assert [(row["matched_id"], row["story_id"]) for row in flags.select(db)] == EXPECTED_ORDER
    assert [row["matched_id"] for row in flags.select(db, Selection(kinds=("quoted",)))] == [5, 3]
    write(db, tmp_path / "flags.csv", ExportOptions("csv"), SHIPPED)
    with (tmp_path / "flags.csv").open(encoding="utf-8") as file:
        exported = list(csv.DictReader(file))
    assert [(row["matched_id"], row["kind"]) for row in exported] == [
        (str(pair[0]), PAIRS[pair][0]) for pair in EXPECTED_ORDER
    ]
    write(db, tmp_path / "flags.html", ExportOptions("html"), SHIPPED)
    page = (tmp_path / "flags.html").read_text(encoding="utf-8")
    assert '<b class="mild">Quoted at length</b>: many lines in a row are quoted' in page
    assert "body:has(#kind-quoted:checked)" in page, "the page offers the kind as a filter"


def test_new_tier_joins_clusters_as_its_row_says(db: sqlite3.Connection) -> None:
    assert {cluster.stories for cluster in flags.find_clusters(db)} == {(1, 2), (7, 8)}


def test_verdicts_on_new_tier_suppress_by_its_severity(db: sqlite3.Connection) -> None:
    decide(db, (3, 4), Verdict.NOT_SIMILAR)
    for kind, status in ((PARTIAL, "not_similar"), ("quoted", "not_similar"), (SIMILAR, "open")):
        commit(db, fingerprinted(4, 1000 + tiers.list_kinds().index(kind)))
        flag_pair(db, 3, 4, kind, signals=FEW_LINES)
        assert db.execute("SELECT status FROM flags WHERE a = 3").fetchone() == (status,), kind


def test_new_tier_is_counted_in_its_place(db: sqlite3.Connection) -> None:
    for pair in PAIRS:
        decide(db, pair, Verdict.QUOTATION)
    counted = [(row["kind"], row["judged"]) for row in verdicts.count_verdicts(db)]
    assert counted == [(SIMILAR, 1), ("quoted", 2), (PARTIAL, 1)]
    _set_verdict_gauges(db)
    assert VERDICTS.labels("HINDI", "quoted", "quotation")._value.get() == 2


@pytest.mark.usefixtures("db")
async def test_desk_shows_new_tier_with_its_evidence(tmp_path: Path) -> None:
    async with desk(tmp_path) as client:
        assert await post(client, "/name", {"name": "Asha"}) == 303
        async with client.get("/case/6") as answer:
            page = unescape(await answer.text()).replace("\N{NO-BREAK SPACE}", " ")
        async with client.get("/?kind=quoted") as answer:
            cases = await answer.text()
    assert '<span class="badge mild" title="50 lines, 25 % of the text">Quoted at length</span>' in page
    assert ">Quoted" in cases, "the queue offers the kind as a filter"


def test_commands_and_metrics_name_new_tier() -> None:
    """In a separate process, because both read the table at import."""
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)
