"""Law: a job on Spark finds what `backfill --fresh` and its sweep find, story by story and flag by flag.

The corpus has ten languages, planted passages, copies of every kind, a reference of works, and rows and pages that end
in other outcomes.  A wrong command line ends in one line, before a session starts.
"""

import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from neardup.config import load
from neardup.core.verify.clusters import Policy
from neardup.records import Language
from neardup.spark.job import Job
from pyarrow import dataset, parquet  # type: ignore[import-untyped]

from tests.support.command import Neardup, assert_one_line, embedded, environment
from tests.support.generated_stories import plant
from tests.support.paths import SAMPLES
from tests.support.reference_works import SECTION, make_works
from tests.support.sample_texts import STORIES
from tests.support.samples import ROWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = dict[tuple[int, ...], dict[str, Any]]
ONLY_IN_A_LEDGER = {"flag_id", "flagged_at", "known_since", "story_known_since", "matched_known_since"}
KEEP: Policy = "longest"
NEW = 9_000_000  # the first id of stories listed later
POISONED = "TAMIL/4104000.html"


class Compared(NamedTuple):
    """What the daemon wrote in `folder`, and what the job wrote in `output`."""

    neardup: Neardup
    output: Path
    progress: list[str]

    def of_daemon(self, *export: str) -> list[dict[str, Any]]:
        path = self.neardup.folder / "export.parquet"
        if "--fingerprints" in export:
            done = self.neardup("export", "--fingerprints", str(path))
        else:
            done = self.neardup("export", *export, "-o", str(path))
        assert done.code == 0, done.err
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        return rows

    def of_spark(self, name: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = dataset.dataset(self.output / name).to_table().to_pylist()
        return rows


@pytest.fixture(scope="module")
def compared(spark: "SparkSession", poisoned_site: str, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    folder = tmp_path_factory.mktemp("compared")
    plant(folder)
    with (folder / "manifest.csv").open(encoding="utf-8") as file:
        planted = list(csv.DictReader(file))
    shutil.copytree(SAMPLES / "stories", folder / "html", dirs_exist_ok=True)
    with (folder / "html" / POISONED).open("ab") as file:
        file.write(b"<!-- POISON -->")
    missing = ROWS[0] | {"id": "999"}
    unknown = ROWS[0] | {"id": "998", "language": "Klingon"}
    rewritten = ROWS[0] | {"id": "997", "path": "rewritten.html"}
    (folder / "html" / rewritten["path"]).write_text(rewrite_sample(Language(rewritten["language"])), encoding="utf-8")
    earlier = ROWS[1] | {"updated_at": "2001-01-01T00:00:00Z"}
    with (folder / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*ROWS[0], "path"])
        writer.writeheader()
        writer.writerows([*planted, *ROWS, rewritten, missing, unknown, earlier])
    neardup = Neardup(folder, environment() | {"PYTHONPATH": poisoned_site})
    text = embedded(folder / "manifest.csv", folder / "html")
    make_works(folder)
    reference = SECTION.replace("works.csv", str(folder / "works.csv")).replace("file:", f"file:{folder}/")
    neardup.configure(text.replace("div.post-body", "div.post-body, body > p") + reference)
    for name, command in (("facts", ("backfill", "--fresh", "--json")), ("works", ("reference", "sync", "--json"))):
        done = neardup(*command)
        assert done.code == 0, done.err
        (folder / f"{name}.json").write_text(json.dumps(done.facts), encoding="utf-8")
    progress: list[str] = []
    Job(spark, load(folder / "config.toml"), str(folder / "output"), None, progress.append, keep=KEEP).run()
    return Compared(neardup, folder / "output", progress)


def rewrite_sample(language: Language) -> str:
    """A page with a sample of which each third word is that of another sample."""
    words, others = (text.split() for text in STORIES[language][:2])
    replaced = words[2::3]
    words[2::3] = [others[n % len(others)] for n in range(len(replaced))]
    return f"<body><p>{' '.join(words)}</p></body>"


def by_key(rows: list[dict[str, Any]], *key: str) -> Rows:
    return {
        tuple(row[name] for name in key): {name: row[name] for name in row if name not in ONLY_IN_A_LEDGER}
        for row in rows
    }


def assert_same(ours: Rows, theirs: Rows) -> None:
    """Every column that the daemon writes has the same value."""
    assert ours.keys() == theirs.keys(), f"missing {theirs.keys() - ours.keys()}, extra {ours.keys() - theirs.keys()}"
    for key, row in theirs.items():
        differing = {name: (ours[key].get(name), value) for name, value in row.items() if ours[key].get(name) != value}
        assert not differing, f"{key}: Spark and daemon differ in {differing}"


def test_fingerprints_are_bit_equal(compared: Compared) -> None:
    ours, theirs = by_key(compared.of_spark("fingerprints"), "id"), by_key(compared.of_daemon("--fingerprints"), "id")
    assert_same(ours, theirs)
    assert [*next(iter(ours.values()))] == [*next(iter(theirs.values()))], "the columns are in another order"


def test_flags_and_clusters_are_those_of_the_daemon(compared: Compared) -> None:
    flags = compared.of_spark("flags")
    shown = [row for row in flags if not row["hidden"]]
    theirs = by_key(compared.of_daemon(), "story_id", "matched_id")
    assert_same(by_key(shown, "story_id", "matched_id"), theirs)
    assert any(row["catalogue"] for row in flags), "no work is matched"
    kinds = {"exact", "near", "similar", "partial", "passage", "rewritten"}
    assert {row["kind"] for row in flags} >= kinds, "a kind is not tried"


def test_members_of_clusters_and_what_to_keep_are_those_of_the_daemon(compared: Compared) -> None:
    ours = compared.of_spark("clusters")
    theirs = compared.of_daemon("--keep", KEEP, "--same-author")
    assert_same(by_key(ours, "story_id"), by_key(theirs, "story_id"))
    assert [*ours[0]] == [*theirs[0]], "the columns are in another order"
    assert any(row["catalogue"] for row in ours), "no work is in a cluster"


def test_a_daily_run_after_an_import_flags_what_it_flags_after_a_backfill(compared: Compared, tmp_path: Path) -> None:
    kept, moved = (Neardup(tmp_path / name, compared.neardup.env) for name in ("kept", "moved"))
    skipped = shutil.ignore_patterns("html", "works", "output", "*.parquet")
    shutil.copytree(compared.neardup.folder, kept.folder, ignore=skipped)
    moved.folder.mkdir()
    text, manifest = (compared.neardup.folder / name for name in ("config.toml", "manifest.csv"))
    listed = manifest.read_text(encoding="utf-8") + "".join(
        f"{NEW + n},{row['language']},,,,,{row['language']}/{row['id']}.html\n" for n, row in enumerate(ROWS[::3])
    )
    (tmp_path / "manifest.csv").write_text(listed, encoding="utf-8")
    for folder, steps in ((kept, []), (moved, [["import", str(compared.output)], ["reference", "sync"]])):
        folder.configure(text.read_text(encoding="utf-8").replace(str(manifest), str(tmp_path / "manifest.csv")))
        for command in (*steps, ["daily", "--since", "2020-01-01T00:00:00Z", "--json"]):
            done = folder(*command)
            assert done.code == 0, done.err
        assert done.facts["fingerprinted"] == len(ROWS[::3]), "another story than the new ones was fingerprinted"
    ours, theirs = (
        by_key(compared._replace(neardup=folder).of_daemon(), "story_id", "matched_id") for folder in (moved, kept)
    )
    assert any(int(pair[0]) >= NEW for pair in theirs), "no new story is flagged"
    columns = ("kind", "hamming", "jaccard", "containment", "matched_containment", "copied_words", "cluster_id")
    assert_same(ours, {key: {name: row[name] for name in columns} for key, row in theirs.items()})


def test_similarities_are_those_of_the_daemon(compared: Compared) -> None:
    theirs = by_key(compared.of_daemon("--by", "story"), "story_id")
    assert_same(by_key(compared.of_spark("stories"), "story_id"), theirs)


def test_every_listed_row_has_one_outcome_with_its_reason(compared: Compared) -> None:
    counts: Counter[tuple[str, str | None]] = Counter()
    for row in compared.of_spark("counts"):
        counts[row["what"], row["reason"]] += row["count"]
    facts, works = (
        json.loads((compared.neardup.folder / f"{name}.json").read_text(encoding="utf-8"))
        for name in ("facts", "works")
    )
    assert counts["fingerprinted", None] == facts["fingerprinted"] + works["added"]
    assert counts["dead_lettered", "quarantined"] == 1, "the page that kills its reader is not counted"
    assert counts["dead_lettered", "bad_language"] == 1
    assert counts["skipped", "missing"] == 1
    assert counts["skipped", "superseded"] == 1
    outcomes = ("fingerprinted", "skipped", "dead_lettered")
    assert sum(count for (what, _), count in counts.items() if what in outcomes) == facts["listed"] + works["listed"]
    assert sum(count for (what, _), count in counts.items() if what == "flagged") == len(compared.of_spark("flags"))


def test_each_stage_says_what_it_did_and_no_scratch_is_left(compared: Compared) -> None:
    assert [line.partition(":")[0] for line in compared.progress] == [
        "listing",
        "read",
        "fingerprints",
        "heavy",
        "shared",
        "prints",
        "passages",
        "candidates",
        "works",
        "assessed",
        "clusters",
        "flags",
        "stories",
        "counts",
    ]
    assert {path.name for path in compared.output.iterdir()} == {
        "fingerprints",
        "flags",
        "clusters",
        "stories",
        "counts",
    }


def test_an_unknown_language_ends_in_one_line(neardup: Neardup) -> None:
    neardup.configure(embedded())
    wrong = neardup("spark", "--output", "out", "--input", "t.parquet", "--language", "Klingon")
    assert_one_line(wrong, 2, "--language", "Klingon")


def test_a_session_that_cannot_be_opened_ends_in_one_line(neardup: Neardup) -> None:
    """After what the launcher of Spark says."""
    wrong = neardup("spark", "--output", "out", "--master", "local[1]", JAVA_HOME="/nonexistent")
    assert wrong.code == 2, wrong.err
    assert wrong.err.splitlines()[-1].startswith("neardup: cannot open a session of Spark: [JAVA_GATEWAY_EXITED]")
    assert "Traceback" not in wrong.err
