"""Laws: the benchmarks measure all the work of a run, and not the loading of code at a first call; that of memory
samples all processes of a backfill until its end; and the beds hold the same stories, in pages such as editors and
sites make, with the candidates planted in them.
"""

import csv
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from neardup.config import load
from neardup.core.fingerprint import version as fingerprint_version
from neardup.core.fingerprint.compute import hash_rare_pairs
from neardup.core.fingerprint.word_hashes import MIN_SHARED
from neardup.core.languages import LANGUAGES
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_page_text
from neardup.core.text.normalize import tokenize
from neardup.core.verify.text import Text
from neardup.index.protocol import LookupResult
from neardup.index.sqlite import SqliteIndex
from neardup.records import BandedFingerprint

from tests.bench import candidates, detector, memory, report, stages, subject
from tests.bench.candidates import DETECTION
from tests.bench.detector import Detected
from tests.bench.generated_store import COPY_EVERY, text_maker
from tests.bench.memory import Sample
from tests.bench.other_programs import go_programs, run_program
from tests.bench.pages import BARE, BEDS, FIRST_ID, Bed, Story, read_ids, site_page, stories, write_pages
from tests.bench.report import Run
from tests.bench.rewritten import LEVELS, make_stories
from tests.bench.subject import embedded_config
from tests.support import synthetic
from tests.support.resource_meter import Measured, run_module
from tests.support.synthetic import LANGUAGE, Stories


def test_the_cpu_of_children_counts() -> None:
    found = Detected(1)
    with found.stage("all"):
        subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    assert found.cpu["all"] >= 0.3, "child processes read neardup's pages, so their CPU time must count"


def test_a_run_tells_its_processes_and_its_roads_apart(tmp_path: Path) -> None:
    write_pages(tmp_path / "pages", 4, plant=False)
    with (tmp_path / "pages" / LANGUAGE / f"{FIRST_ID}.html").open("a", encoding="utf-8") as page:
        page.write("<p style='display: none'>never shown</p>")
    (tmp_path / "config.toml").write_text(embedded_config(tmp_path / "pages"), encoding="utf-8")
    measured = Measured(**run_module(subject.__name__, tmp_path / "config.toml", "fresh"))
    assert measured.roads is not None
    assert tuple(measured.roads) == (0.75, 0.25, 0), "the library in C renders one page of four"
    assert 0 < measured.children_cpu < measured.cpu, measured


def test_the_go_program_is_built_and_measured_or_left_out_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = "echo wall_s=2.0 cpu_us_per_story=$(test $GOGC && echo 500 || echo 100)"
    for name, script in {"go": "", "build.sh": f"printf '#!/bin/sh\\n%s' '{program}' >$1; chmod +x $1"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    programs = go_programs(tmp_path, tmp_path)
    where = {"endpoint": "http://127.0.0.1:1", "redis": "127.0.0.1:1"}
    runs = {
        name: [Run(run_program(run_name, 1000, "backfill", pages=1000, **where))] for name, run_name in programs.items()
    }
    report.show_beds(
        {"bare": [Run(Measured(1000, seconds=1.0, cpu=0.2, children_cpu=0.1, roads=(1.0, 0.0, 0.0)))]} | runs, "bare"
    )
    absolute, relative = capsys.readouterr().out.split("times the bare bed")
    assert ["Go,", "plain", "500", "500", "-", "-", "-", "-", "-"] in map(str.split, absolute.splitlines())
    assert ["Go,", "tuned", "0.50", "0.50", "-", "-", "-", "-"] in map(str.split, relative.splitlines())
    monkeypatch.setenv("PATH", "")
    assert go_programs(tmp_path, tmp_path) == {}
    assert capsys.readouterr().err == "the Go program is left out: Go is not installed\n"


def test_stages_are_measured_as_a_reader_process_runs_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, clock, version = list[str](), time.process_time, fingerprint_version.version
    monkeypatch.setattr(fingerprint_version, "version", lambda: calls.append("load") or version())  # type: ignore[func-returns-value]
    monkeypatch.setattr(time, "process_time", lambda: calls.append("clock") or clock())  # type: ignore[func-returns-value]
    write_pages(tmp_path / "pages", 5)
    (tmp_path / "config.toml").write_text(embedded_config(tmp_path / "pages"), encoding="utf-8")
    costs = stages.subject_costs(load(tmp_path / "config.toml"), read_ids(tmp_path / "pages" / "manifest.csv"))
    assert list(costs) == ["fetch", "extract", "fingerprint"], "the stages have other names in a run's metrics"
    assert all(cost > 0 for cost in costs.values()), costs
    assert calls[0] == "load", "the clock of a stage started before its code was loaded"


async def test_the_detector_skips_the_stories_that_a_run_skips(tmp_path: Path) -> None:
    write_pages(tmp_path / "html", 3, plant=False)
    (tmp_path / "html" / "wordless.html").write_text("<p>!</p>", encoding="utf-8")
    pages = [f"{LANGUAGE}/{FIRST_ID + n}.html" for n in range(3)]
    with (tmp_path / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        manifest = csv.writer(file)
        manifest.writerow(("id", "language", "path"))
        manifest.writerows((n, LANGUAGE, path) for n, path in enumerate([*pages, *pages, "wordless.html"]))
    (tmp_path / "config.toml").write_text(detector.CONFIG.format(corpus=tmp_path), encoding="utf-8")
    results = await detector.from_texts(load(tmp_path / "config.toml"), tmp_path)
    assert results[detector.VERIFIED].pairs == [(0, 3), (1, 4), (2, 5)]


async def test_the_first_lookup_is_not_timed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock_calls, timed = [], []

    def server_cpu() -> float:
        """Called when the clock starts, and when it stops."""
        clock_calls.append(True)
        return 0.0

    class Watched(SqliteIndex):
        async def look_up(self, probes: Sequence[BandedFingerprint]) -> tuple[int | None, list[LookupResult]]:
            timed.append(len(clock_calls) % 2 == 1)
            return await super().look_up(probes)

    monkeypatch.setattr(candidates, "PROBES", candidates.PROBES_PER_LOOKUP)
    rng = np.random.default_rng(1)
    stories = synthetic.draw(rng, synthetic.uniform(), candidates.INSERTS + 100)
    probes = synthetic.make_probes(rng, synthetic.uniform(), stories, candidates.PROBES)
    index = Watched(tmp_path / "index.db", DETECTION.bandings(LANGUAGES))
    figures = await candidates.measure(index, stories, probes, server_cpu, tmp_path)
    await index.close()
    assert timed == [False, True, True], "the first lookup loads compiled code, so it must not be timed"
    assert all(figures.found[synthetic.THREE_BITS]), "a copy within the Hamming distance was not found"


def test_candidates_that_share_bands_are_nominated() -> None:
    signatures = np.arange(3 * 64, dtype=np.uint8).reshape(3, 64)
    signatures[1, :40:2] = signatures[0, :40:2]
    signatures[2, :20] = signatures[0, :20]
    stories = Stories(np.array([[0] * 16, [255] * 16, [15] * 16], np.uint8), signatures)
    probe = BandedFingerprint(LANGUAGE, bytes([0xF0] * 16), signatures[0].tobytes())
    nominee, count = candidates._nominated(
        stories, probe, LookupResult({synthetic.FIRST_ID + 1}, np.array([2, 3], np.uint32), {})
    )
    assert count == 2, "a story found by id and by number was counted twice"
    assert nominee.matches == (synthetic.FIRST_ID + 2,), "story 1 agrees in 20 rows, but shares no band"


def test_the_table_of_batch_stages_omits_page_stages(capsys: pytest.CaptureFixture[str]) -> None:
    seconds = dict.fromkeys(
        ("fetch", "extract", "fingerprint", "look_up", "look_up_passages", "nominate", "commit", "index", "verify"), 1.0
    )
    report.show_batches({"flow": [Run(Measured(10, stages=seconds))]})
    shown = {line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]}
    assert shown == {"look_up", "look_up_passages", "nominate", "commit", "index", "verify"}, (
        "the wall times of page stages overlap"
    )


def test_every_story_has_a_text_of_its_own_apart_from_the_copies() -> None:
    make_text, again = text_maker(), text_maker()
    texts = [make_text(n) for n in range(4 * COPY_EVERY)]
    assert texts == [again(n) for n in range(4 * COPY_EVERY)]
    assert len(set(texts)) == len(texts) - 1, "of three copies, one is exact and two have a changed word"
    assert texts[2 * COPY_EVERY] == texts[COPY_EVERY + 1]


def test_a_backfill_is_sampled_until_its_end(tmp_path: Path) -> None:
    into = tmp_path / "samples.csv"
    arguments = ["--stories", "60", "--every", "0.02", "--csv", str(into)]
    done = CliRunner().invoke(memory.main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "60" in done.output.split()
    with into.open(encoding="utf-8") as file:
        samples = [Sample(*map(float, row)) for row in csv.reader(file)]  # type: ignore[arg-type]
    assert max(sample.processes for sample in samples) >= 3, "the reader processes count"
    assert all(0 <= sample.anonymous <= sample.total for sample in samples)


each_bed = pytest.mark.parametrize("bed", BEDS.values(), ids=BEDS)


@cache
def few_stories() -> Sequence[Story]:
    return list(stories(8, seed=1, plant=False))


def shown(bed: Bed, story: Story) -> Sequence[bytes]:
    """The words of a story, as neardup reads them from the bed's page."""
    return tokenize(extract_page_text(bed.page(story).encode(), None, Extraction(bed.body)))


@each_bed
def test_each_bed_holds_the_same_stories(bed: Bed) -> None:
    for story in few_stories():
        bare, found = b" ".join(shown(BEDS[BARE], story)), b" ".join(shown(bed, story))
        if bed.page is site_page and not bed.body:
            assert bare in found != bare, "without a selector the template is a part of the text"
        else:
            assert found == bare, story.id


def test_the_template_is_like_that_of_a_site() -> None:
    first, last = (
        site_page(story).replace("\n".join(f"<p>{text}</p>" for text in story.paragraphs), "")
        for story in (few_stories()[0], few_stories()[-1])
    )
    assert 7_000 < len(last.encode()) < 10_000, "about 8 KB around the story"
    sheet = re.search(r"<style>(.*?)</style>", last, re.DOTALL)
    assert sheet is not None and 2_000 < len(sheet[1]) < 2_500 and sheet[1].count("@media") >= 3
    for piece, least in {"<svg": 5, "<button": 5, 'class="menu"': 1, 'class="modal"': 1, 'class="card"': 5}.items():
        assert last.count(piece) >= least, piece
    assert first.partition("<body>")[0].count("\n") == last.partition("<body>")[0].count("\n"), "stories share it"


@pytest.mark.parametrize(
    ("bed", "pieces"),
    [
        ("pasted from Word", ["MsoNormal", "<span lang", "<o:p>", "<!--[if gte mso"]),
        (
            "pasted from Google Docs",
            ["docs-internal-guid", "font-size", "background-color", "vertical-align", "white-space"],
        ),
    ],
)
def test_pasted_pages_have_what_the_editors_leave(bed: str, pieces: Sequence[str]) -> None:
    page = BEDS[bed].page(few_stories()[0])
    assert not [piece for piece in pieces if piece not in page]


def test_rare_words_nominate_the_candidates_that_are_planted_and_no_others() -> None:
    earlier, new = make_stories(40)
    held = [set(hash_rare_pairs(Text(" ".join(story.words)).word_hashes).tolist()) for story in earlier]
    for name, (one_in, planted) in LEVELS.items():
        for n, story in enumerate(new[name]):
            own = set(hash_rare_pairs(Text(" ".join(story.words)).word_hashes).tolist())
            found = [place for place, hashes in enumerate(held) if len(own & hashes) >= MIN_SHARED]
            first = n // one_in * planted
            assert found == ([] if n % one_in else list(range(first, first + planted))), f"{name}: story {n}"
