"""Serials that match: the case names the chapters, and a plot leads to each pair of them."""

from contextlib import closing
from io import StringIO
from pathlib import Path

from neardup.core.verify.tiers import COPIED_WORDS, PASSAGE
from neardup.ledger import candidates, connect, flags, serials, verification
from neardup.moderation.desk.api_answers import read_case
from neardup.moderation.evidence.terminal import render_report
from neardup.moderation.export.tables import export_row
from neardup.pages.reader_pool import ReaderPool
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.query.similarity import compute_similarity
from neardup.records import Assessment, Fingerprinted, Signals, Story
from rich.console import Console

from tests.support.builders import commit, fingerprint_of
from tests.support.desk_client import get, named_client
from tests.support.languages import HINDI

PAIRS = [(n, n + 10) for n in range(1, 5)]


def write_serials(path: Path) -> None:
    """Chapters 1 to 4 of "asha" are chapters 3 to 6 of "ravi"."""
    with closing(connect(path)) as db:
        for author, ids, first in (("asha", range(1, 5), 1), ("ravi", range(11, 15), 3)):
            for place, story_id in enumerate(ids, first):
                story = Story(story_id, HINDI, author_id=author, title=f"{author} part {place}", published_at=story_id)
                commit(db, Fingerprinted(story, fingerprint_of(story_id.to_bytes(16)), None))
        commit(db, pairs=[(b, a) for a, b in PAIRS])
        found = Assessment(PASSAGE, Signals(60, extra={COPIED_WORDS: 90}))
        verification.record(db, [(pair, found) for pair in candidates.list_pending(db, BEFORE_ALL, 9)], "v")
        serials.refresh(db)


async def test_case_names_the_chapters_and_the_plot_leads_to_each_pair(tmp_path: Path) -> None:
    write_serials(tmp_path / "neardup.db")
    async with named_client(tmp_path) as client:
        _, case = await get(client, "/case/12")
        _, plot = await get(client, "/serials/12/2")
    said = "chapters 3 to 6 are chapters 1 to 4 of the source"
    assert said in case and said in plot
    assert '<a href="/serials/1/11">' in case
    svg = plot[plot.index('<svg class="dots"') : plot.index("</svg>", plot.index('<svg class="dots"'))]
    for a, b in PAIRS:
        assert f'<a href="/pair/{a}/{b}"><rect class="part s1" x="{a - 1}" y="{a - 1}"' in svg
    with closing(connect(tmp_path / "neardup.db")) as db:
        found = read_case(db, 11)
    assert found is not None
    assert [serial.model_dump(mode="json") for serial in found.serials] == [
        {
            "source_author_id": "asha",
            "source_serial": "asha",
            "copy_author_id": "ravi",
            "copy_serial": "ravi",
            "aligned_pairs": 4,
            "parts": [{"source": [1, 4], "copy": [3, 6]}],
        }
    ]


def read_nothing() -> ReaderPool:
    raise AssertionError("no words are copied that could be shown")


async def test_exports_and_show_name_the_works_of_chapters(tmp_path: Path) -> None:
    path = tmp_path / "neardup.db"
    write_serials(path)
    with closing(connect(path)) as db:
        rows = [export_row(row, {}) for row in flags.select(db)]
    assert {(row["story_serial"], row["matched_serial"]) for row in rows} == {("ravi", "asha")}
    report = await compute_similarity(path, read_nothing, 12, "12")
    assert (report.serial, [match["source_serial"] for match in report.serial_matches]) == ("ravi", ["asha"])
    printed = StringIO()
    Console(width=200, file=printed).print(render_report(report))
    said = "serial ravi by author ravi follows asha by author asha: chapters 3 to 6 are chapters 1 to 4"
    assert said in printed.getvalue()
