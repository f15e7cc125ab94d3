"""`neardup compare`: all planted pairs by id, files, and errors of both; and `show` and `export --by story`."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import to_builtins
from neardup.app import make_comparer
from neardup.config import load
from neardup.errors import Fatal
from neardup.ledger import connect, runs
from neardup.query.compare import compare

from tests.support.command import Ended, Neardup, assert_one_line, embedded
from tests.support.languages import MARATHI, SAMPLED, TAMIL
from tests.support.paths import SAMPLES
from tests.support.samples import TRUTH

STORIES = SAMPLES / "stories"
A, B = STORIES / "TAMIL" / "4104002.html", STORIES / "TAMIL" / "4104005.html"


@pytest.fixture
def editable(make_neardup: Callable[[str], Neardup], tmp_path: Path) -> Neardup:
    """The command on fingerprinted stories whose pages a test may change."""
    shutil.copytree(STORIES, tmp_path / "stories")
    neardup = make_neardup(embedded(stories=tmp_path / "stories"))
    assert neardup("backfill").code == 0
    return neardup


@pytest.mark.usefixtures("flagged")
async def test_planted_pairs_are_compared_by_id(neardup: Neardup) -> None:
    before = neardup.ledger.read_bytes()
    languages = set()
    for pair in TRUTH:
        facts = await compare(make_comparer(load(neardup.folder / "config.toml")), str(pair["a"]), str(pair["b"]))
        assert (facts.a.story_id, facts.b.story_id, facts.kind) == (pair["a"], pair["b"], pair["kind"])
        assert (facts.a.changed, facts.b.changed) == (False, False)
        assert facts.earlier == "a", "the samples' copies were published later"
        assert facts.same_author is ("the author's own" in pair["how"])
        assert facts.passages[0].words == facts.longest_run_words
        assert facts.passages[0].words > 10
        languages.add(facts.a.language)
    assert languages == set(SAMPLED)
    printed = neardup("compare", str(pair["a"]), str(pair["b"]), "--json").facts
    assert printed == json.loads(json.dumps(to_builtins(facts))), "the command prints something else"
    assert neardup.ledger.read_bytes() == before, "the comparison changed the ledger"


@pytest.mark.usefixtures("flagged")
def test_the_printed_comparison_shows_the_passages(neardup: Neardup) -> None:
    out = neardup("compare", "4103000", "4103005").out
    for words in (
        "story 4103000",
        "similar: ",
        "97 % of A is also in B",
        "A was published ",
        " before B",
        "«बसून",
        "more",
    ):
        assert words in out, words
    assert "\x1b" not in out


def test_files_need_no_ledger(neardup: Neardup, tmp_path: Path) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("One two three four five six seven eight nine ten, and on.", encoding="utf-8")
    facts = neardup("compare", str(A), str(B), "--json").facts
    assert facts["kind"] == "partial"
    assert facts["a"]["file"] == str(A)
    assert facts["a"]["words"] > 100
    assert all(facts["a"][name] is None for name in ("story_id", "language", "title", "published_at", "changed"))
    assert (facts["earlier"], facts["same_author"]) == (None, None)
    assert neardup("compare", str(A), str(plain), "--json").facts["passages"] == []
    assert not neardup.ledger.exists()


async def test_a_file_against_a_story(editable: Neardup) -> None:
    facts = await compare(make_comparer(load(editable.folder / "config.toml")), str(A), "4104002")
    assert (facts.kind, facts.share_a, facts.share_b) == ("exact", 1, 1)
    assert (facts.a.story_id, facts.b.story_id, facts.b.language) == (None, 4104002, "TAMIL")


def test_a_changed_page_is_reported(editable: Neardup, tmp_path: Path) -> None:
    (tmp_path / "stories" / "TAMIL" / "4104005.html").write_bytes(A.read_bytes())
    out = editable("compare", "4104002", "4104005").out
    assert "the page of B has changed since it was fingerprinted" in out
    assert "exact: " in out


async def test_fingerprints_of_another_version_say_nothing_of_a_change(editable: Neardup) -> None:
    with closing(connect(editable.ledger)) as db:
        runs.put(db, "fingerprint_version", "0" * 16)
    facts = await compare(make_comparer(load(editable.folder / "config.toml")), "4104002", "4104005")
    assert (facts.a.changed, facts.b.changed, facts.kind) == (None, None, "partial")


async def test_the_thresholds_are_those_of_the_language(editable: Neardup) -> None:
    plain = (editable.folder / "config.toml").read_text(encoding="utf-8")
    for language, kind in ((MARATHI, "rewritten"), (TAMIL, "similar")):
        editable.configure(
            plain + f"[detection.{language}]\njaccard = 0.99\ncontainment = 0.99\npassage_words = 9999\n"
        )
        facts = await compare(make_comparer(load(editable.folder / "config.toml")), "4103000", "4103005")
        assert facts.kind == kind, language


async def test_errors_of_a_comparison(editable: Neardup, tmp_path: Path) -> None:
    parts = make_comparer(load(editable.folder / "config.toml"))
    (tmp_path / "stories" / "TAMIL" / "4104002.html").unlink()
    (tmp_path / "stories" / "TAMIL" / "4104005.html").write_bytes(
        b"<article><div class=story>two words</div></article>"
    )
    (tmp_path / "empty.html").touch()
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "other.html").write_bytes(b"<p>A page that has no such element as the configuration wants.</p>")
    for code, a, b, *words in (
        (1, "4104002", "4104000", "story 4104002: its page is gone: TAMIL/4104002.html"),
        (1, "4104000", "4104005", "story 4104005: nothing to compare: too_short"),
        (1, "4104000", "7", "story 7 is not in the ledger"),
        (2, "4104000", "04104000", "are the same story"),
        (2, str(A), str(A.parent / ".." / "TAMIL" / A.name), "are the same story"),
        (2, "4104000", "9" * 19, "is neither a file nor a story in the ledger"),
        (2, "4104000", "no-such.html", "no-such.html is neither a file nor a story in the ledger"),
        (2, "4104000", "क" * 1000, "is neither a file nor a story in the ledger"),
        (2, "4104000", str(tmp_path), "cannot read", "Is a directory"),
        (2, "4104000", "", "cannot read"),
        (1, str(tmp_path / "empty.html"), str(A), "empty.html: nothing to compare: empty"),
        (1, str(tmp_path / "binary"), str(A), "binary: nothing to compare: not_text"),
        (1, str(tmp_path / "other.html"), str(A), "other.html: nothing to compare: no_body"),
    ):
        with pytest.raises(Fatal) as raised:
            await compare(parts, a, b)
        assert raised.value.exit_code == code, (a, b)
        assert "\n" not in str(raised.value)
        for word in words:
            assert word in str(raised.value)
    assert_one_line(editable("compare", "4104000", "7"), 1, "story 7 is not in the ledger")


def test_the_html_page_shows_the_pair_and_its_flag(editable: Neardup, tmp_path: Path) -> None:
    (tmp_path / "stories" / "MARATHI" / "4103004.html").unlink()
    out = tmp_path / "pair.html"
    done = editable("compare", "4103000", "4103005", "--html", str(out))
    assert (done.code, done.out) == (0, "")
    text = out.read_text(encoding="utf-8")
    for words in ("97 % of A is also in B", "आजीचा कंदील", "<ins>गोविंद</ins>", "A was published 3 months before B"):
        assert words in text, words
    assert editable("compare", "4103002", "4103004", "--html", str(out)).code == 0
    text = out.read_text(encoding="utf-8")
    for words in ("Near copy", "A&#39;s word pairs are also in B", "its page is gone: MARATHI/4103004.html"):
        assert words in text, "the facts of the ledger are missing"
    assert editable("compare", str(A), str(B), "--html", str(out)).code == 0
    assert "4104005.html</bdi>" in out.read_text(encoding="utf-8")
    assert_one_line(editable("compare", "4103000", "4103005", "--html", str(tmp_path / "stories")), 1, "cannot write")
    assert_one_line(editable("compare", "4103000", "7", "--html", str(out)), 1, "story 7 is not in the ledger")
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_ids_need_a_ledger(neardup: Neardup) -> None:
    assert_one_line(neardup("compare", "4104000", "4104006"), 1, "run `neardup backfill` first")


def test_two_files_need_no_configuration(neardup: Neardup, tmp_path: Path) -> None:
    (neardup.folder / "config.toml").unlink()

    def compare_here(*arguments: str) -> Ended:
        command = [sys.executable, "-W", "error", "-m", "neardup", "compare", *arguments]
        env = {name: value for name, value in neardup.env.items() if not name.startswith("NEARDUP_")}
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=300, check=False)
        return Ended(done.returncode, done.stdout, done.stderr)

    done = compare_here(str(A), str(B), "--json")
    assert done.code == 0, done.err
    assert done.facts["passages"]
    assert compare_here(str(A), str(B), "--html", str(tmp_path / "pair.html")).code == 0
    assert (tmp_path / "pair.html").stat().st_mode & 0o777 == 0o640
    other_script = compare_here(str(A), str(STORIES / "HINDI" / "4100000.html"))
    assert other_script.code == 0 and "not a copy by the configured thresholds" in other_script.out, other_script.err
    assert_one_line(compare_here("4104002", str(B)), 2, "the id of a story needs a configuration")
    assert_one_line(neardup("compare", str(A), str(B)), 2, "cannot read the configuration")


def test_show_gives_the_sources_of_a_story_that_copies(flagged: Neardup) -> None:
    done = flagged("export", "--by", "story", "--format", "jsonl")
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert rows and [row["similarity"] for row in rows] == sorted((row["similarity"] for row in rows), reverse=True)
    for row in rows[:: len(rows) // 3]:
        report = flagged("show", str(row["story_id"]), "--json").facts
        assert (report["similarity"], report["copied_words"]) == (row["similarity"], row["copied_words"])
        assert (report["sources"][0]["story_id"], report["no_text"]) == (row["top_source_id"], None)
        first = report["sources"][0]["passages"][0]
        assert len(first["text"].split()) <= first["end"] - first["start"] + 5
    shown = flagged("show", str(rows[0]["story_id"]))
    assert shown.code == 0, shown.err
    assert f"story {rows[0]['story_id']}" in shown.out and "█" in shown.out and "words 1 to" in shown.out


def test_similarity_can_be_chosen(flagged: Neardup) -> None:
    def stories(*options: str) -> set[int]:
        done = flagged("export", "--by", "story", "--format", "jsonl", *options)
        return {json.loads(line)["story_id"] for line in done.out.splitlines()}

    def pairs(*options: str) -> list[tuple[int, int]]:
        done = flagged("export", "--format", "jsonl", *options)
        rows = [json.loads(line) for line in done.out.splitlines()]
        return [(row["story_id"], row["matched_id"]) for row in rows]

    high = stories("--min-similarity", "0.9")
    assert high and high < stories() and high == stories("--min-similarity", "0.9", "--same-author")
    assert {story for story, _ in pairs("--min-similarity", "0.9")} >= high
    ended = flagged("export", "--by", "story", "-o", str(flagged.folder / "stories.html"))
    assert "stories: " in ended.err
    done = flagged("export", "--new", "--format", "jsonl")
    assert done.out, "an export by story counts for nothing as to --new"


def test_story_that_copies_nothing_and_unknown_story(flagged: Neardup) -> None:
    ended = flagged("show", "1")
    assert (ended.code, ended.out, ended.err) == (1, "", "neardup: story 1 is not in the ledger\n")
    assert flagged("case", "a name").err == "neardup: story a name is not in the ledger\n", (
        "a name is shown as it was given"
    )
    copies = {
        row["story_id"]
        for row in map(json.loads, flagged("export", "--by", "story", "--format", "jsonl").out.splitlines())
    }
    own = next(story for story in range(4100000, 4100009) if story not in copies)
    shown = flagged("show", str(own))
    assert "similarity 0 %: none of its words is known to be copied from a story by others" in " ".join(
        shown.out.split()
    )


def test_changed_text_is_not_shown(flagged: Neardup) -> None:
    [row, *_] = map(json.loads, flagged("export", "--by", "story", "--format", "jsonl").out.splitlines())
    page = flagged.folder / "changed" / row["language"] / f"{row['story_id']}.html"
    page.parent.mkdir(parents=True)
    page.write_text("<p>" + "another text " * 50, encoding="utf-8")
    changed = f"file:{flagged.folder / 'changed'}"
    ended = flagged("show", str(row["story_id"]), "--json", NEARDUP_CONTENT__URL=changed, NEARDUP_EXTRACT__BODY="")
    report = ended.facts
    assert report["no_text"] == "the page has changed since it was fingerprinted"
    assert {passage["text"] for source in report["sources"] for passage in source["passages"]} == {None}
