"""Where the order of publication is not known, nothing that users see names an original or an earlier story."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.support.command import Neardup, embedded
from tests.support.desk_browser import serving
from tests.support.paths import SAMPLES

CLAIM = re.compile(r"is likely the original|likely original \d|thick ring|class=\"[^\"]* original|was published \d")
ORDER = re.compile(r"\b(first|original|earlier|earliest)\b", re.IGNORECASE)
UNKNOWN = re.compile(r"not known|unknown order")
DATES: dict[str, Callable[[int], str]] = {
    "none": lambda _: "",
    "equal": lambda _: "2025-01-01T00:00:00Z",
    "one of four": lambda story: "2025-01-01T00:00:00Z" if story % 4 == 0 else "",
}


def undated(folder: Path, date_of: Callable[[int], str]) -> str:
    """A configuration of the samples with these dates of publication, and one more copy of a story."""
    with (SAMPLES / "manifest.csv").open(encoding="utf-8", newline="") as listed:
        rows = list(csv.DictReader(listed))
    for row in rows:
        row["path"] = f"{row['language']}/{row['id']}.html"
        row["published_at"] = date_of(int(row["id"]))
    more = [row | {"id": f"{row['id']}9", "published_at": ""} for row in rows if row["language"] == "TAMIL"]
    if date_of(1) == date_of(2) != "":
        more = [row | {"published_at": date_of(1)} for row in more]
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows + more)
    return embedded(folder / "manifest.csv")


def desk_pages(neardup: Neardup, pairs: list[tuple[int, int]], author: str) -> dict[str, str]:
    """The queue, and the pages of pairs, of their cases and stories, and of an author, by their addresses."""
    addresses = ["/", "/statistics", "/authors", f"/author/{author}"]
    for a, b in pairs:
        addresses += [f"/case/{a}", f"/pair/{min(a, b)}/{max(a, b)}", f"/story/{a}", f"/story/{b}"]
    shown: dict[str, str] = {}
    with serving(neardup) as desk:
        for address in addresses:
            with urlopen(Request(desk.address + address, headers={"Cookie": "neardup_name=Asha"})) as answer:
                shown[address] = answer.read().decode()
    return shown


@pytest.mark.parametrize("dates", DATES)
def test_nothing_names_an_original_of_unknown_order(
    make_neardup: Callable[[str], Neardup], tmp_path: Path, dates: str
) -> None:
    neardup = make_neardup(undated(tmp_path, DATES[dates]))
    shown = {"backfill": neardup("backfill").out, "status": neardup("status").out}
    rows = [json.loads(line) for line in neardup("export", "--format", "jsonl").out.splitlines()]
    assert {row["earlier_id"] for row in rows} == {None}
    assert [cluster["likely_original"] for cluster in neardup("status", "--json").facts["clusters"]["largest"]] == [
        None
    ] * 5
    large = max(rows, key=lambda row: row["cluster_size"] or 0)
    assert large["cluster_size"] > 2, "no cluster is drawn"
    pair = large["matched_id"], large["story_id"]
    shown["compare"] = neardup("compare", *map(str, pair)).out
    assert neardup("compare", *map(str, pair), "--html", str(tmp_path / "pair.html")).code == 0
    shown["pair.html"] = (tmp_path / "pair.html").read_text(encoding="utf-8")
    shown["flags.html"] = neardup("export", "--format", "html").out
    shown |= desk_pages(neardup, [pair], large["story_author_id"])
    for name, text in shown.items():
        seen = without_code(text)
        assert not (claim := CLAIM.search(seen)), (
            f"{name} claims an order: {seen[max(claim.start() - 100, 0) : claim.end() + 40]!r}"
        )
        assert name in {"/", "/statistics", "/authors", f"/story/{pair[0]}"} or UNKNOWN.search(
            " ".join(seen.split())
        ), f"{name} does not say that the order is not known"
    if dates == "none":
        shown |= {"export": neardup("export").out, "stories": neardup("export", "--by", "story").out}
        shown["stories.html"] = neardup("export", "--by", "story", "--format", "html").out
        shown |= {"case": neardup("case", str(pair[1])).out, "notice": neardup("case", str(pair[1]), "--notice").out}
        shown |= {"verdicts": neardup("verdicts").out, "case file": neardup("case", str(pair[0])).out}
        shown |= {"show": neardup("show", str(pair[1])).out, "doctor": neardup("doctor").out}
        for name, text in shown.items():
            seen = without_code(text)
            assert not (word := ORDER.search(seen)), (
                f"{name} speaks of an order: {seen[max(word.start() - 100, 0) : word.end() + 40]!r}"
            )


def without_code(page: str) -> str:
    """What a page shows, with its attributes but without styles, scripts and the texts of stories."""
    page = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"<bdi\b.*?</bdi>|<(p|dd|div)[^>]* lang=\"en\".*?</\1>", "", page, flags=re.DOTALL)


def test_check_shows_dates_of_publication(make_neardup: Callable[[str], Neardup], tmp_path: Path) -> None:
    page = str(SAMPLES / "stories" / "TAMIL" / "4104000.html")
    neardup = make_neardup(undated(tmp_path, DATES["none"]))
    assert neardup("backfill").code == 0
    assert "not known" in neardup("check", page, "--language", "ta").out
    neardup.configure(embedded())
    assert neardup("backfill", "--refingerprint").code == 0
    assert re.search(r"\b14 April 2025\b", neardup("check", page, "--language", "ta").out)
