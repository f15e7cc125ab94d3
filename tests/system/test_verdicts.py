"""Later runs respect the verdicts of moderators: after refingerprinting, sweeps, edits and new copies."""

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from neardup.core.verify.tiers import EXACT, NEAR, PARTIAL, list_kinds
from neardup.ledger import connect, flags, read, verdicts
from neardup.ledger.flags import Selection
from neardup.records import Verdict

from tests.support.command import Neardup, embedded
from tests.support.paths import SAMPLES

TRUTH = [json.loads(line) for line in (SAMPLES / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
ROWS = list(csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()))
PAIRS = {kind: [(pair["a"], pair["b"]) for pair in TRUTH if pair["kind"] == kind] for kind in list_kinds()}
VERDICTS = {
    PAIRS[PARTIAL][0]: Verdict.TEMPLATE,
    PAIRS[EXACT][0]: Verdict.NOT_SIMILAR,
    PAIRS[NEAR][0]: Verdict.PLAGIARISM,
}
TEMPLATE, NOT_SIMILAR, PLAGIARISM = VERDICTS
NEW = 4_199_999


class Platform:
    """The samples in a folder of their own, where a test may edit them, and the command on them."""

    def __init__(self, folder: Path, make: Callable[[str], Neardup]) -> None:
        self.pages = folder / "stories"
        shutil.copytree(SAMPLES / "stories", self.pages)
        self.rows = {int(row["id"]): dict(row) for row in ROWS}
        self.manifest = folder / "stories.jsonl"
        self.list()
        self.neardup = make(embedded(self.manifest, self.pages))

    def page(self, story_id: int) -> Path:
        return self.pages / str(self.rows[story_id]["language"]) / f"{story_id}.html"

    def list(self) -> None:
        self.manifest.write_text("".join(json.dumps(row) + "\n" for row in self.rows.values()), encoding="utf-8")

    def edit(self, story_id: int, html: str, day: int) -> None:
        self.page(story_id).write_text(html, encoding="utf-8")
        self.rows[story_id]["updated_at"] = f"2026-01-{day:02}T00:00:00Z"
        self.list()

    def run(self, *arguments: str) -> dict[str, int]:
        done = self.neardup(*arguments, "--json")
        assert done.code == 0, done.err
        return dict(done.facts["flagged"])

    def give_verdicts(self) -> None:
        with closing(connect(self.neardup.ledger)) as db:
            for pair, verdict in VERDICTS.items():
                [flag_id] = db.execute("SELECT flag_id FROM flags WHERE a = ? AND b = ?", pair).fetchone()
                verdicts.decide(db, [flag_id], verdict, "as seen", "Asha", verdicts.identify_state(db, [flag_id]))

    def flagged(self) -> dict[tuple[int, int], tuple[str, str, str | None]]:
        """The kind, status and context of all flags that are not withdrawn."""
        with closing(read(self.neardup.ledger)) as db:
            rows = flags.select(db, Selection(statuses=()))
            return {
                (min(pair), max(pair)): (row["kind"], row["status"], row["context"])
                for row in rows
                if row["status"] != "withdrawn"
                for pair in [(row["story_id"], row["matched_id"])]
            }

    def verdict_facts(self) -> dict[str, dict[str, int]]:
        return dict(self.neardup("status", "--json").facts["verdicts"])


@pytest.fixture
def platform(tmp_path: Path, make_neardup: Callable[[str], Neardup]) -> Platform:
    """The samples after a backfill and three verdicts."""
    platform = Platform(tmp_path / "platform", make_neardup)
    assert sum(platform.run("backfill").values()) == len(TRUTH)
    platform.give_verdicts()
    return platform


def test_full_runs_do_not_flag_judged_pairs_again(platform: Platform) -> None:
    before = platform.flagged()
    want = {(pair["a"], pair["b"]): (pair["kind"], "open", None) for pair in TRUTH}
    want |= {pair: (want[pair][0], verdict, None) for pair, verdict in VERDICTS.items()}
    assert before == want
    assert platform.run("sweep") == {}
    assert platform.flagged() == before
    again = Counter(platform.run("backfill", "--refingerprint"))
    assert again == Counter(pair["kind"] for pair in TRUTH if (pair["a"], pair["b"]) not in VERDICTS)
    assert platform.flagged() == before
    assert platform.run("sweep") == {}
    assert platform.flagged() == before
    assert platform.verdict_facts() == {
        "judged": {"plagiarism": 1, "template": 1, "not_similar": 1},
        "kept": {"not_similar": 1, "template": 1},
        "in_context": {},
    }
    out = platform.neardup("status").out
    assert "3  (not_similar 1, plagiarism 1, template 1)" in out and "2  (not_similar 1, template 1)" in out


def test_an_edit_is_flagged_again_only_if_it_is_worse(platform: Platform) -> None:
    before = platform.flagged()
    original, copy = TEMPLATE
    html = platform.page(copy).read_text(encoding="utf-8")
    platform.edit(copy, html.replace("</p>", " २०२६ </p>", 1), 1)
    assert platform.run("daily") == {}, "an unchanged kind was flagged again"
    assert platform.flagged() == before
    platform.edit(copy, platform.page(original).read_text(encoding="utf-8"), 2)
    assert platform.run("daily") == {"exact": 1}
    assert platform.flagged() == before | {TEMPLATE: ("exact", "open", "template")}


def test_a_new_copy_of_a_judged_story_shows_the_verdict(platform: Platform) -> None:
    before = platform.flagged()
    original, copy = NOT_SIMILAR
    platform.rows[NEW] = dict(platform.rows[original], id=str(NEW))
    platform.edit(NEW, platform.page(original).read_text(encoding="utf-8"), 3)
    assert platform.run("daily") == {"exact": 2}
    flag = ("exact", "open", "not_similar")
    assert platform.flagged() == before | {(original, NEW): flag, (copy, NEW): flag}
    assert platform.verdict_facts()["in_context"] == {"not_similar": 2}


def test_a_new_copy_of_a_template_is_shown_once(platform: Platform) -> None:
    before = platform.flagged()
    original, copy = TEMPLATE
    platform.rows[NEW] = dict(platform.rows[original], id=str(NEW))
    platform.edit(NEW, platform.page(original).read_text(encoding="utf-8"), 3)
    assert platform.run("daily") == {"exact": 1}
    assert platform.flagged() == before | {(original, NEW): ("exact", "open", "template")}, (
        f"the new copy was also flagged with {copy}"
    )
    assert platform.run("sweep") == {}
    assert platform.verdict_facts()["kept"] == {"template": 1}


def test_undo_reopens_a_flag_and_forget_drops_verdicts(platform: Platform) -> None:
    with closing(connect(platform.neardup.ledger)) as db:
        [given] = verdicts.list_of_pair(db, *TEMPLATE)
        verdicts.undo(
            db, given["decision"], "Binu", verdicts.identify_state(db, verdicts.list_flags(db, given["decision"]))
        )
    assert platform.flagged()[TEMPLATE] == ("partial", "open", None)
    assert platform.neardup("forget", str(PLAGIARISM[0])).code == 0
    assert platform.verdict_facts()["judged"] == {"not_similar": 1}


def test_evaluate_and_replay_measure_flags_by_verdicts(platform: Platform) -> None:
    evaluated = platform.neardup("evaluate", "--truth", str(SAMPLES / "truth.jsonl"), "--json").facts["verdicts"]
    assert {(row["language"], row["kind"]): row["precision"] for row in evaluated} == {
        ("HINDI", "exact"): 0.0,
        ("HINDI", "near"): 1.0,
        ("HINDI", "partial"): 1.0,
        ("all", "all"): 2 / 3,
    }
    ended = platform.neardup("evaluate", "--sample", "2", "--min-words", "300")
    assert "Precision by moderators' verdicts" in ended.out, ended.err
    strict = ("replay", "--containment", "1", "--jaccard", "1", "--passage-words", "100000")
    assert platform.neardup(*strict, "--json").facts["verdicts"] == {
        "real": 2,
        "lost": {"template": 1},
        "not_similar": 1,
        "spared": 0,
    }
    assert (
        "of 2 pairs decided to be copies 1  (template 1) would not have been flagged" in platform.neardup(*strict).out
    )
