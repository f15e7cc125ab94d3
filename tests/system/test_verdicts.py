"""What moderators said is remembered by the next runs: anew from the first page on, swept, edited, copied again."""

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from neardup.core.verify.tiers import EXACT, NEAR, PARTIAL, kinds
from neardup.ledger import connect, flags, read, verdicts
from neardup.ledger.selection import Selection
from neardup.records import Verdict

from tests.support.command import Neardup, embedded
from tests.support.paths import SAMPLES

TRUTH = [json.loads(line) for line in (SAMPLES / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
ROWS = list(csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()))
PAIRS = {kind: [(pair["a"], pair["b"]) for pair in TRUTH if pair["kind"] == kind] for kind in kinds()}
SAID = {
    PAIRS[PARTIAL][0]: Verdict.TEMPLATE,
    PAIRS[EXACT][0]: Verdict.NOT_SIMILAR,
    PAIRS[NEAR][0]: Verdict.PLAGIARISM,
}
TEMPLATE, NOT_SIMILAR, PLAGIARISM = SAID
NEW = 4_199_999


class Platform:
    """The samples in a folder of the test's own, to be edited, and neardup on them."""

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

    def judge(self) -> None:
        with closing(connect(self.neardup.ledger)) as db:
            for pair, verdict in SAID.items():
                [flag_id] = db.execute("SELECT flag_id FROM flags WHERE a = ? AND b = ?", pair).fetchone()
                verdicts.decide(db, [flag_id], verdict, "as seen", "Asha", verdicts.state(db, [flag_id]))

    def flagged(self) -> dict[tuple[int, int], tuple[str, str, str | None]]:
        """Every flag that is shown or judged: kind, status and context."""
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
    """Backfilled, and three pairs judged."""
    made = Platform(tmp_path / "platform", make_neardup)
    assert sum(made.run("backfill").values()) == len(TRUTH)
    made.judge()
    return made


def test_nothing_judged_is_flagged_again_by_runs_that_look_at_everything(platform: Platform) -> None:
    before = platform.flagged()
    want = {(pair["a"], pair["b"]): (pair["kind"], "open", None) for pair in TRUTH}
    want |= {pair: (want[pair][0], verdict, None) for pair, verdict in SAID.items()}
    assert before == want
    assert platform.run("sweep") == {}
    assert platform.flagged() == before
    again = Counter(platform.run("backfill", "--refingerprint"))
    assert again == Counter(pair["kind"] for pair in TRUTH if (pair["a"], pair["b"]) not in SAID)
    assert platform.flagged() == before
    assert platform.run("sweep") == {}
    assert platform.flagged() == before
    assert platform.verdict_facts() == {
        "judged": {"plagiarism": 1, "template": 1, "not_similar": 1},
        "kept": {"not_similar": 1, "template": 1},
        "in_context": {},
    }
    told = platform.neardup("status").out
    assert "3  (not_similar 1, plagiarism 1, template 1)" in told and "2  (not_similar 1, template 1)" in told


def test_an_edit_is_shown_again_only_where_it_made_things_worse(platform: Platform) -> None:
    before = platform.flagged()
    original, copy = TEMPLATE
    html = platform.page(copy).read_text(encoding="utf-8")
    platform.edit(copy, html.replace("</p>", " २०२६ </p>", 1), 1)
    assert platform.run("daily") == {}, "still a partial copy"
    assert platform.flagged() == before
    platform.edit(copy, platform.page(original).read_text(encoding="utf-8"), 2)
    assert platform.run("daily") == {"exact": 1}
    assert platform.flagged() == before | {TEMPLATE: ("exact", "open", "template")}


def test_a_new_copy_of_a_judged_story_is_shown_with_what_was_said(platform: Platform) -> None:
    before = platform.flagged()
    original, copy = NOT_SIMILAR
    platform.rows[NEW] = dict(platform.rows[original], id=str(NEW))
    platform.edit(NEW, platform.page(original).read_text(encoding="utf-8"), 3)
    assert platform.run("daily") == {"exact": 2}
    told = ("exact", "open", "not_similar")
    assert platform.flagged() == before | {(original, NEW): told, (copy, NEW): told}
    assert platform.verdict_facts()["in_context"] == {"not_similar": 2}


def test_a_new_copy_of_a_template_is_shown_once(platform: Platform) -> None:
    before = platform.flagged()
    original, copy = TEMPLATE
    platform.rows[NEW] = dict(platform.rows[original], id=str(NEW))
    platform.edit(NEW, platform.page(original).read_text(encoding="utf-8"), 3)
    assert platform.run("daily") == {"exact": 1}
    assert platform.flagged() == before | {(original, NEW): ("exact", "open", "template")}, f"and not beside {copy}"
    assert platform.run("sweep") == {}
    assert platform.verdict_facts()["kept"] == {"template": 1}


def test_what_is_undone_is_shown_again_and_what_is_forgotten_is_gone(platform: Platform) -> None:
    with closing(connect(platform.neardup.ledger)) as db:
        [said] = verdicts.of_pair(db, *TEMPLATE)
        verdicts.undo(db, said["decision"], "Binu", verdicts.state(db, verdicts.flags_of(db, said["decision"])))
    assert platform.flagged()[TEMPLATE] == ("partial", "open", None)
    assert platform.neardup("forget", str(PLAGIARISM[0])).code == 0
    assert platform.verdict_facts()["judged"] == {"not_similar": 1}


def test_evaluate_and_replay_tell_what_the_verdicts_say_of_the_flags(platform: Platform) -> None:
    evaluated = platform.neardup("evaluate", "--truth", str(SAMPLES / "truth.jsonl"), "--json").facts["verdicts"]
    assert {(row["language"], row["kind"]): row["precision"] for row in evaluated} == {
        ("HINDI", "exact"): 0.0,
        ("HINDI", "near"): 1.0,
        ("HINDI", "partial"): 1.0,
        ("all", "all"): 2 / 3,
    }
    told = platform.neardup("evaluate", "--sample", "2", "--min-words", "60")
    assert "Precision by moderators' verdicts" in told.out, told.err
    assert "Precision by moderators" in (platform.neardup.folder / "evaluation.html").read_text(encoding="utf-8")
    strict = ("replay", "--containment", "1", "--jaccard", "1")
    assert platform.neardup(*strict, "--json").facts["verdicts"] == {
        "real": 2,
        "lost": {"template": 1},
        "not_similar": 1,
        "spared": 0,
    }
    assert (
        "of 2 pairs decided to be copies 1  (template 1) would not have been flagged" in platform.neardup(*strict).out
    )
