"""`init` leads from a folder of pages to the first flags in two commands; `demo` never touches the user's own data; the
written configuration has the values that it was given, keeps every other line, and is valid.
"""

import json
import os
import pty
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.cli.start import Value, make_config_text
from neardup.config import load
from neardup.records import RENDER_REASONS

from tests.support.command import PROGRAM, TIMEOUT_SECONDS, Ended, Neardup, assert_one_line
from tests.support.forked_command import Command, run_forked
from tests.support.languages import HINDI, TAMIL
from tests.support.paths import SAMPLES
from tests.support.sample_texts import STORIES
from tests.support.samples import PLANTED, ROWS

BODY = {"article .story", "div.post-body"}


@pytest.fixture
def empty(make_neardup: Callable[[str], Neardup]) -> Neardup:
    """The command in a folder without a configuration."""
    neardup = make_neardup("")
    (neardup.folder / "config.toml").unlink()
    return neardup


def run(neardup: Neardup, *arguments: str, **env: str) -> Ended:
    """Run the command without --config."""
    own = neardup.env | {"NEARDUP_METRICS__LISTEN": "127.0.0.1:0"} | env
    return Ended(*run_forked(Command([*arguments], str(neardup.folder), own), TIMEOUT_SECONDS))


def test_init_on_a_folder_needs_one_option(empty: Neardup) -> None:
    done = run(empty, "init", "--pages", str(SAMPLES / "stories"))
    assert done.code == 0, done.out + done.err
    config = load(empty.folder / "config.toml")
    assert config.extract.body and (config.source.kind, config.source.manifest) == ("folder", None)
    assert sorted(path.name for path in empty.folder.iterdir()) == ["config.toml", "var"], "no list of pages is frozen"
    assert f"{len(ROWS)} pages" in done.out and "uncertain" not in done.out, "the folders name the languages"
    assert "ok   object store" in done.out and "neardup backfill" in done.out, done.out
    flagged = run(empty, "backfill")
    assert flagged.code == 0, flagged.err
    page = (empty.folder / "var" / "flags.html").read_text(encoding="utf-8")
    found = sum(f"story {row['language']}/{row['id']}.html" in page for row in ROWS)
    assert found == len({story for pair in PLANTED for story in pair[:2]}), "the pairs of the samples must be found"


def test_init_says_the_languages_of_a_mixed_folder(empty: Neardup) -> None:
    for language in (HINDI, TAMIL):
        for n, text in enumerate(STORIES[language][:3]):
            (empty.folder / f"{language}-{n}.txt").write_text(text, encoding="utf-8")
    (empty.folder / "few.txt").write_text("bonjour madame", encoding="utf-8")
    done = run(empty, "init", "--pages", ".")
    assert done.code == 0, done.out + done.err
    said = "language by script and words: HINDI 3, TAMIL 3, ENGLISH 1; 1 of them is uncertain"
    assert said in done.out and "guessed" not in done.err, f"it is said once: {done.out}{done.err}"
    assert load(empty.folder / "config.toml").source.language == ""


def test_init_with_a_manifest_of_ones_own(empty: Neardup) -> None:
    arguments = [
        "--pages",
        str(SAMPLES / "stories"),
        "--list",
        str(SAMPLES / "manifest.csv"),
        "--body",
        "article .story",
    ]
    done = run(empty, "init", *arguments, "-o", "mine.toml")
    assert done.code == 0, done.out + done.err
    assert "neardup --config mine.toml backfill" in done.out
    assert "none of 20 pages is rendered" in done.out
    config = load(empty.folder / "mine.toml")
    assert (config.extract.body, config.extract.strip, config.index.url) == ("article .story", (".share",), "sqlite:")


def test_init_proposes_selectors_for_the_templates_at_either_end_of_a_long_list(empty: Neardup) -> None:
    holders = ["<article><p class='tale'>{}</p></article>"] * 2 + ["<main><div class='post'>{}</div></main>"] * 2
    for n, holder in enumerate(holders):
        page = f"<nav>Home, genres, help</nav>{holder.format(STORIES[HINDI][n])}<footer>All rights</footer>"
        (empty.folder / f"{n}.html").write_text(page, encoding="utf-8")
    rows = [f"{n},hi,{n // 1250}.html" for n in range(5_000)]
    (empty.folder / "list.csv").write_text("\n".join(["id,language,path", *rows]), encoding="utf-8")
    done = run(empty, "init", "--pages", ".", "--list", "list.csv")
    assert done.code == 0, done.out + done.err
    assert "a story on 20 of 20 pages" in done.out, done.out
    body = load(empty.folder / "config.toml").extract.body
    assert body in ("article, div.post", "div.post, article"), body


def test_init_says_what_share_of_the_pages_is_rendered_by_what_and_why(empty: Neardup) -> None:
    story = f"<article>{STORIES[HINDI][0]}{{}}</article>"
    pages = [story.format("<button>share</button>")] * 2 + [story.format("<p hidden>never shown</p>"), story.format("")]
    for n, page in enumerate(pages):
        (empty.folder / f"{n}.html").write_text(page, encoding="utf-8")
    done = run(empty, "init", "--pages", ".", "--language", "hi", "--body", "article")
    assert done.code == 0, done.out + done.err
    [said, advice] = [line for line in done.out.splitlines() if "rendered" in line or "extract.body" in line]
    assert said.startswith("3 of 4 pages (75%) are rendered by Python"), said
    counts = {
        reason: int(pages) for reason, pages in re.findall(r"([\w ]+) \((\d)\)", said.partition("because of:")[2])
    }
    assert sum(counts.values()) == 3 and {reason.strip() for reason in counts} <= set(RENDER_REASONS), said
    assert "extract.body" in advice


def test_init_asks_on_a_terminal(empty: Neardup) -> None:
    ours, theirs = pty.openpty()
    command = [
        argument for argument in empty.command("init") if "--config" not in argument and "config.toml" not in argument
    ]
    env = empty.env | {"TERM": "dumb"}
    with subprocess.Popen(
        command, cwd=empty.folder, env=env, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
    ) as asked:
        os.close(theirs)
        os.write(ours, f"{SAMPLES / 'stories' / 'HINDI'}\n\n\narticle .story\n".encode())
        printed, _ = asked.communicate(timeout=120)
    os.close(ours)
    assert asked.returncode == 0, printed
    config = load(empty.folder / "config.toml")
    assert (config.index.url, config.extract.body) == ("sqlite:", "article .story")
    assert b"7 pages" in printed


def test_init_for_athena_says_what_to_fill_in(empty: Neardup) -> None:
    done = run(empty, "init", "--pages", "s3://pages/html", "--list", "athena")
    assert done.code == 0, done.err
    assert "Fill in its section [source]" in done.out
    assert load(empty.folder / "config.toml").source.kind == "athena"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], ["give --pages", "folder"]),
        (["--pages", "nowhere"], ["--pages: there is no folder nowhere"]),
        (["--pages", "empty"], ["--pages: ", "empty has no files *.txt"]),
        (["--pages", "mine", "--language", "klingon"], ["--language: unknown language 'klingon'"]),
        (["--pages", "mine", "--list", "no.csv"], ["--list: there is no file no.csv"]),
        (["--pages", "s3://bucket"], ["give --list"]),
        (
            ["--pages", "mine", "--list", "mine.csv", "--language", "hi"],
            ["--language: the list", "leave the option out"],
        ),
        (["--pages", "mine", "--language", "hi", "--body", "p["], ["not a CSS selector"]),
        (["--pages", "mine", "--language", "hi", "--index", "redis:localhost"], ["index.url"]),
        (["--pages", "mine/\udcff"], ["cannot write config.toml", "not UTF-8"]),
        (["-o", "nowhere/config.toml"], ["--output: there is no folder nowhere"]),
    ],
)
def test_init_refuses_a_wrong_answer_and_leaves_nothing_behind(
    empty: Neardup, arguments: list[str], words: list[str]
) -> None:
    for name in ("empty", "mine", "mine/\udcff"):
        (empty.folder / name).mkdir()
    (empty.folder / "mine" / "1.html").write_bytes((SAMPLES / "stories" / "HINDI" / "4100000.html").read_bytes())
    before = sorted(empty.folder.iterdir())
    done = run(empty, "init", *arguments)
    assert done.code == 2, done.err
    assert len(done.err.strip().splitlines()) == 1 and all(word in done.err for word in words), done.err
    assert sorted(empty.folder.iterdir()) == before


def test_init_replaces_nothing(empty: Neardup) -> None:
    (empty.folder / "config.toml").write_text("mine", encoding="utf-8")
    done = run(empty, "init", "--pages", str(SAMPLES / "stories"))
    assert done.code == 2 and "config.toml exists already" in done.err
    assert (empty.folder / "config.toml").read_text(encoding="utf-8") == "mine"
    link = empty.folder / "link.toml"
    link.symlink_to("nowhere")
    done = run(empty, "init", "-o", "link.toml", "--pages", "mine", "--list", "mine.csv", "--language", "hi")
    assert done.code == 2 and link.is_symlink(), "init removed what it had not written"


def test_the_demo_has_settings_and_a_ledger_of_its_own(empty: Neardup) -> None:
    own = empty.folder / "own.db"
    done = run(
        empty, "demo", neardup_ledger__path=str(own), NEARDUP_SOURCE__MANIFEST="/nowhere", NEARDUP_CONFIG="/no.toml"
    )
    assert done.code == 0, done.err
    assert f"New flags ({len(PLANTED)})" in done.out and "neardup-demo" in done.out
    assert not own.exists() and [path.name for path in empty.folder.iterdir()] == ["neardup-demo"]
    new = [*PROGRAM, "demo"]  # the hint names the program that runs, which no forked one is
    again = subprocess.run(new, cwd=empty.folder, env=empty.env, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "No new flags" in again.stdout
    hint = [line.strip() for line in again.stdout.partition("To look further:")[2].splitlines() if line.strip()]
    assert len(hint) == 3 and hint[-1].endswith(" review"), hint
    script = "\n".join(["set -e", *hint[:2], f"{hint[2]} --help"])  # the desk itself would not end
    env = {name: value for name, value in empty.env.items() if name != "PATH"} | {"PATH": "/usr/bin:/bin"}
    shown = subprocess.run(
        ["bash", "-c", script], cwd=empty.folder, env=env, capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0 and "4104002" in shown.stdout, shown.stderr


def test_the_check_of_a_page_that_is_held_leaves_its_story_out(empty: Neardup) -> None:
    assert run(empty, "demo").code == 0
    config, page = "neardup-demo/config.toml", "neardup-demo/stories/TAMIL/4104000.html"
    checked = run(empty, "check", page, "--language", "ta", NEARDUP_CONFIG=config)
    assert checked.code == 0, checked.err
    assert "is the page of the story 4104000, which is in the ledger: it is left out" in checked.out, checked.out
    found = json.loads(run(empty, "check", page, "--language", "ta", "--json", NEARDUP_CONFIG=config).out)
    assert found["left_out"] == 4104000
    assert found["matches"] and 4104000 not in {match["story_id"] for match in found["matches"]}


def test_the_demo_overwrites_no_files(empty: Neardup) -> None:
    (empty.folder / "mine").mkdir()
    (empty.folder / "mine" / "config.toml").write_text("[source]", encoding="utf-8")
    done = run(empty, "demo", "mine")
    assert done.code == 2 and "name a new folder" in done.err
    assert_one_line(empty("status", config=empty.folder / "mine" / "config.toml"), 2, "config.toml")


KEYS = ["source.manifest", "content.url", "content.region", "extract.body", "index.url", "ledger.path", "source.output"]
ORIGINAL = (SAMPLES / "config.toml").read_text(encoding="utf-8")
texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(st.sampled_from(KEYS), texts), st.none() | st.lists(texts))
def test_values_are_read_as_they_were_given(values: dict[str, str], strip: list[str] | None) -> None:
    lists: dict[str, Value] = {} if strip is None else {"extract.strip": tuple(strip)}
    written = make_config_text(lists | values)
    tables, before = tomllib.loads(written), tomllib.loads(ORIGINAL)
    for name, value in values.items():
        section, key = name.split(".")
        assert tables[section].pop(key) == value
        before[section].pop(key, None)
    if strip is not None:
        assert tables["extract"].pop("strip") == strip
        before["extract"].pop("strip")
    assert tables == before, "a key without a value here must keep its line"
    assert len(written.splitlines()) >= len(ORIGINAL.splitlines()) - 1


def test_the_commented_lines_are_valid_too(tmp_path: Path) -> None:
    values = {"source.kind": "athena", "source.database": "d", "source.output": "s3://r/"}
    path = tmp_path / "config.toml"
    text = make_config_text(values | {"content.url": "s3://pages/html", "content.region": "ap-south-1"})
    path.write_text(text.replace("# backfill_sql", "backfill_sql").replace("# daily_sql", "daily_sql"))
    assert (load(path).source.kind, load(path).content.region) == ("athena", "ap-south-1")


def test_a_key_that_is_not_set_is_a_comment() -> None:
    text = make_config_text({"source.kind": "folder", "source.manifest": None})
    assert "\n# manifest = " in text and "manifest" not in tomllib.loads(text)["source"]


def test_a_key_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"run\.colour"):
        make_config_text({"run.colour": "red"})
