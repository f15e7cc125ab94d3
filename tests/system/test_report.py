"""The report for operators on the bundled samples shows the contents of the ledger in a self-contained page."""

import os
import re

from neardup.core.verify.tiers import kinds
from selectolax.lexbor import LexborHTMLParser

from tests.support.command import Neardup

PLOTS = [
    "Flags by day",
    "Flags by language",
    "Differing bits of the SimHash",
    "Jaccard similarity",
    "Containment, the larger way",
    "Members of a bucket",
    "Latency of the stages",
]
STAGES = {"fetch", "extract", "fingerprint", "look_up", "look_up_passages", "nominate", "commit", "index", "verify"}


def rows_of(tree: LexborHTMLParser, column: str) -> dict[str, list[str]]:
    """The rows of the table with this first column, by their first cell."""
    [table] = [node for node in tree.css("table") if node.css("th")[0].text() == column]
    rows = [[cell.text() for cell in row.css("td")] for row in table.css("tbody tr")]
    return {row[0]: row[1:] for row in rows}


def test_a_report_shows_the_contents_of_the_ledger(neardup: Neardup) -> None:
    assert neardup("backfill").code == 0
    ended = neardup("report")
    assert (ended.code, ended.out.split()) == (0, ["Report:", str(neardup.folder / "report.html")]), ended.err
    text = (neardup.folder / "report.html").read_text(encoding="utf-8")
    tree = LexborHTMLParser(text)
    assert [node.attributes["aria-label"] for node in tree.css("svg")] == PLOTS
    assert "<script" not in text
    assert not re.findall(r"""(?:src|href)=["'](?!#)|url\((?!#)|@import""", text), "the page refers to another file"
    ids = [node.attributes["id"] for node in tree.css("[id]")]
    assert len(ids) == len(set(ids)), "two plots share an id"
    counted = rows_of(tree, "language")
    flagged = neardup("status", "--json").facts["flags"]
    for language, counts in flagged.items():
        assert counted[language] == [*(str(counts.get(kind, 0)) for kind in kinds()), str(sum(counts.values()))]
    assert len(counted) == 1 + len(flagged)
    assert counted["all"][-1] == str(sum(sum(counts.values()) for counts in flagged.values()))
    times = {stage: row[0] for stage, row in rows_of(tree, "stage").items()}
    assert times.keys() == STAGES
    assert times["fingerprint"] == "61", "each story was fingerprinted once"


def test_an_empty_ledger_has_no_plots(neardup: Neardup) -> None:
    (neardup.folder / "empty.csv").write_text("id,language\n", encoding="utf-8")
    assert neardup("report").code == 1, "there is no ledger yet"
    assert neardup("backfill", NEARDUP_SOURCE__MANIFEST=str(neardup.folder / "empty.csv")).code == 1
    ended = neardup("report", "-o", str(neardup.folder / "page.html"))
    assert ended.code == 0, ended.err
    assert "<svg" not in (neardup.folder / "page.html").read_text(encoding="utf-8")


def test_a_report_without_matplotlib_keeps_its_tables(neardup: Neardup) -> None:
    (neardup.folder / "without").mkdir()
    (neardup.folder / "without" / "matplotlib.py").write_text("raise ImportError('absent')", encoding="utf-8")
    assert neardup("backfill").code == 0
    ended = neardup("report", PYTHONPATH=f"{neardup.folder / 'without'}{os.pathsep}{neardup.env.get('PYTHONPATH', '')}")
    assert ended.code == 0, ended.err
    assert "pip install 'neardup[report]'" in ended.err
    text = (neardup.folder / "report.html").read_text(encoding="utf-8")
    assert "<svg" not in text
    assert {"all"} <= rows_of(LexborHTMLParser(text), "language").keys()


def test_an_unwritable_page_is_one_error_line(neardup: Neardup) -> None:
    assert neardup("backfill").code == 0
    ended = neardup("report", "-o", "config.toml/page.html")
    assert (ended.code, ended.err) == (2, "neardup: --output: there is no folder config.toml\n")
    ended = neardup("report", "-o", "/proc/page.html")
    assert (ended.code, ended.err) == (1, "neardup: cannot write the page /proc/page.html: No such file or directory\n")
