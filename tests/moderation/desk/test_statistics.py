"""The page of statistics shows the figures of the ledger, as text and as a chart that says the same."""

import re
from contextlib import closing
from pathlib import Path

from neardup.core.verify.tiers import EXACT, SIMILAR
from neardup.ledger import connect, verdicts
from neardup.records import Verdict

from tests.support.builders import flag_pair
from tests.support.desk_client import get, named_client
from tests.support.languages import TAMIL
from tests.support.verdicts import give_verdict


async def test_statistics_of_an_empty_ledger(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        status, page = await get(client, "/statistics")
    assert status == 200
    for line in ("0 pairs flagged, 0 stories fingerprinted", "No case is open", "Nothing was decided", "No pair has a"):
        assert line in page


async def test_statistics_of_a_day(tmp_path: Path) -> None:
    async with named_client(tmp_path) as client:
        with closing(connect(tmp_path / "neardup.db")) as db:
            for n in range(4):
                flag_pair(db, 2 * n, 2 * n + 1, EXACT if n else SIMILAR, language=TAMIL)
            give_verdict(db, [(0, 1), (2, 3)], Verdict.PLAGIARISM)
            give_verdict(db, [(4, 5)], Verdict.NOT_SIMILAR)
            seen = verdicts.state(db, [1])
            verdicts.decide(db, [1], Verdict.REPOST, "", "<b>Binu</b>", seen)
        async with client.get("/statistics") as answer:
            markup = await answer.text()
        status, page = await get(client, "/statistics")
    assert status == 200 and "<b>Binu" not in markup
    assert "4 pairs flagged, 0 stories fingerprinted" in page
    assert 'href="/case/6">The oldest open case has waited' in page
    assert "Two moderators agreed on 0 % of the latest 1 pair" in page
    assert "Half of the latest 3 pairs waited at most" in page
    rows = re.findall(
        r'<tr><th scope="row"><bdi>(.*?)</bdi></th>.*?<td class="n"[^>]*>(\d*)</td><td class="n"[^>]*>(\d*)</td>', page
    )
    assert rows == [("Asha", "2", "2"), ("<b>Binu</b>", "1", "1")], "decisions today and in all"
    heights = [
        [h for h in re.findall(r'height="([\d.]+)"', svg) if float(h)] for svg in re.findall("<svg.*?</svg>", page)
    ]
    assert heights == [["40.0"], ["20.0"]]
    figures = re.findall(r'<span class="badge \w*">([^<]+)</span></td>' + r'<td class="n"[^>]*>([^<]*)</td>' * 3, page)
    assert figures == [("Exact copy", "50\xa0%", "2", "1"), ("Similar stories", "100\xa0%", "1", "")], (
        "precision, decided, plagiarism"
    )
