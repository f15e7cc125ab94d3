"""A run that can read nothing, or next to nothing, fails and says which setting to look at; nothing is lost by it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command import COMMON, Ended, Neardup, embedded
from tests.support.generated_stories import configuration, generate
from tests.support.paths import SAMPLES
from tests.support.servers import Aws

Make = Callable[..., Neardup]
HEAD = "id,language,path,updated_at\n"
WORDS = "राम अपने गाँव के पुराने स्कूल में हर सुबह जल्दी पहुँच जाता था और दीवार पर कुछ लिखता था"
LATER = "2026-02-01T00:00:00Z"


def assert_refused(ended: Ended, *words: str) -> None:
    """The command failed, and its last line has all these words."""
    assert (ended.code, "Traceback" in ended.err) == (1, False), ended.err
    last = ended.err.strip().splitlines()[-1]
    for word in words:
        assert word in last, last


def listing(folder: Path, rows: list[str], pages: dict[str, str]) -> str:
    """A configuration for a manifest of these rows, and a folder of these pages."""
    (folder / "pages").mkdir(exist_ok=True)
    for name, text in pages.items():
        (folder / "pages" / name).write_text(text, encoding="utf-8")
    (folder / "manifest.csv").write_text(HEAD + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return embedded(folder / "manifest.csv", folder / "pages").replace('body = "article .story, div.post-body"', "")


def test_a_wrong_folder_is_named_with_a_path(make_neardup: Make, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    neardup = make_neardup(embedded(stories=tmp_path / "elsewhere"))
    tried = str(tmp_path / "elsewhere/")
    assert_refused(neardup("backfill"), "none of 61 stories", "missing 61", tried, ".html", "content.url")
    [run] = neardup("status", "--json").facts["runs"]
    assert (run["status"], run["counts"]["skipped"]) == ("failed", {"missing": 61})
    assert tried in run["counts"]["examples"]["missing"]
    shown = neardup("status").out
    assert "missing 61" in shown
    assert tried in "".join(shown.split("\n"))


def test_a_wrong_prefix_in_s3_is_named_with_a_key(make_neardup: Make, aws: Aws) -> None:
    aws.bucket("stories")
    neardup = make_neardup(
        f'[source]\nmanifest = "{SAMPLES}/manifest.csv"\n[content]\nurl = "s3://stories/wrong"\n'
        f'endpoint = "{aws.endpoint}"\npath_style = true\nregion = "us-east-1"\n{COMMON.format(index="sqlite:")}'
    )
    assert_refused(neardup("backfill"), "none of 61", "missing 61", "s3://stories/wrong/", ".html", "content.url")


@pytest.mark.parametrize(
    ("rows", "page", "words"),
    [
        (
            ["1,klingon,a.html,", "2,elvish,b.html,"],
            WORDS,
            ["none of 2", "bad_language 2", "unknown language", "column language"],
        ),
        (["1,hi,a.html,", "2,hi,b.html,"], "", ["none of 2", "empty 2", "/pages/", "content.url"]),
        (["1,hi,a.html,", "2,hi,b.html,"], "दो शब्द", ["none of 2", "too_short 2", "/pages/", "extract.body"]),
        (
            ["1,hi,/etc/a.html,", "2,hi,../b.html,"],
            WORDS,
            ["none of 2", "bad_path 2", "is not a path below", "column path"],
        ),
        (["1,hi,wrong/a.html,", "2,hi,,"], WORDS, ["none of 2", "missing 2", ".html", "content.key"]),
        ([",hi,a.html,"], WORDS, ["none of 1", "bad_id 1", "no id", "column id"]),
        (["1,hi,a.html,soon"], WORDS, ["none of 1", "bad_time 1", "'soon'", "time columns"]),
        ([], WORDS, ["the listing has no stories", "source.manifest"]),
    ],
)
def test_each_wrong_listing_names_its_setting(
    make_neardup: Make, tmp_path: Path, rows: list[str], page: str, words: list[str]
) -> None:
    neardup = make_neardup(listing(tmp_path, rows, {"a.html": page, "b.html": page}))
    for command in ("backfill", "daily"):
        assert_refused(neardup(command), *words)


def test_a_wrong_selector_of_the_body_is_named(make_neardup: Make) -> None:
    neardup = make_neardup(embedded().replace("article .story, div.post-body", ".nothing"))
    assert_refused(neardup("backfill"), "none of 61", "no_body 61", "story ", "extract.body")


def test_a_share_below_a_hundredth_fails_and_one_above_does_not(make_neardup: Make, tmp_path: Path) -> None:
    for readable, code in ((1, 1), (3, 0)):
        rows = [f"{n},hi,{'a' if n <= readable else 'gone'}.html," for n in range(1, 202)]
        neardup = make_neardup(listing(tmp_path, rows, {"a.html": WORDS}), str(readable))
        ended = neardup("backfill")
        assert ended.code == code, ended.err
        if code:
            assert_refused(ended, "only 1 of 201", "missing 200", "gone.html")


def test_after_the_setting_is_mended_every_story_is_read(make_neardup: Make, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    neardup, undisturbed = make_neardup(embedded(stories=tmp_path / "elsewhere")), make_neardup(embedded(), "right")
    assert neardup("backfill").code == 1
    neardup.configure(embedded())
    ended = neardup("backfill", "--json")
    assert (ended.code, ended.facts["listed"]) == (0, 61), "the failed backfill was taken for one to resume"
    assert undisturbed("backfill").code == 0
    assert neardup.flagged_pairs() == undisturbed.flagged_pairs()


@pytest.mark.usefixtures("flagged")
def test_a_daily_run_over_known_stories_alone_is_done(neardup: Neardup) -> None:
    for arguments in (("daily",), ("backfill",), ("daily", "--since", LATER)):
        ended = neardup(*arguments, "--json")
        assert (ended.code, ended.facts["warnings"]) == (0, {}), ended.err


def daily_after(make_neardup: Make, tmp_path: Path, missing: int) -> tuple[Neardup, Ended]:
    """A daily run whose `missing` new stories are not in the folder, after a good backfill of 40."""
    manifest = generate(tmp_path, 40)
    neardup = make_neardup(configuration(tmp_path))
    assert neardup("backfill").code == 0
    with manifest.open("a", encoding="utf-8") as file:
        file.writelines(f"{n},hi,{LATER},{LATER}\n" for n in range(1000, 1000 + missing))
    return neardup, neardup("daily", "--json")


def test_stories_known_by_date_do_not_hide_a_wrong_folder(make_neardup: Make, tmp_path: Path) -> None:
    neardup, ended = daily_after(make_neardup, tmp_path, 30)
    assert_refused(ended, "none of 30 stories", "missing 30", ".html")
    for n in range(1000, 1030):
        (tmp_path / f"html/HINDI/{n}.html").write_text(f"{WORDS} {n}", encoding="utf-8")
    assert neardup("daily", "--json").facts["fingerprinted"] == 30, "the failed run moved the watermark"


def test_a_quiet_day_with_a_missing_story_is_a_warning(make_neardup: Make, tmp_path: Path) -> None:
    _, ended = daily_after(make_neardup, tmp_path, 1)
    assert ended.code == 0, ended.err
    assert "none of 1 stories could be read" in ended.facts["warnings"]["reading"]
    [line] = [json.loads(text_line) for text_line in ended.err.splitlines() if "no story could be read" in text_line]
    assert "1000.html" in line["why"]
