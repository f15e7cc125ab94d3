"""The commands of moderators: `review`, `permit`, `complaints` and `suspects`.

`review` says in one line what is wrong, and a signal stops it.  `permit` enters, lists and revokes permissions, and an
export follows them; `complaints` records the rows of a CSV file and lists the open ones.  A run over all languages
marks the stories that are not what their listing or their page pretends, and `suspects` lists them.
"""

import csv
import re
import signal
import socket
import subprocess
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from neardup.core.languages import SHIPPED
from neardup.ledger import connect, now_ms, transaction
from neardup.records import Language

from tests.support.command import Ended, Neardup, assert_one_line, embedded
from tests.support.copying_story import CopiedFrom, write_copying_story
from tests.support.desk_client import prose, write
from tests.support.languages import HINDI, SAMPLED
from tests.support.paths import ROOT
from tests.support.sample_texts import STORIES

TIMEOUT_SECONDS = 60


def test_errors_at_the_start(neardup: Neardup) -> None:
    assert_one_line(neardup("review"), 1, "run `neardup backfill` first")
    assert_one_line(neardup("review", "--listen", "nowhere"), 2, "--listen: not HOST:PORT: 'nowhere'")
    assert_one_line(neardup("review", NEARDUP_REVIEW__LISTEN="nowhere"), 2, "review.listen: not HOST:PORT: 'nowhere'")
    assert_one_line(neardup("review", NEARDUP_REVIEW__TOKEN="short"), 2, "review.token: fewer than 16 printable")
    assert_one_line(neardup("review", "--listen", "0.0.0.0:0"), 2, "review.token: 0.0.0.0:0", "NEARDUP_REVIEW__TOKEN")
    assert not neardup.ledger.exists(), "review created a ledger"
    assert neardup("backfill").code == 0
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        assert_one_line(neardup("review", "--listen", listen), 1, f"review.listen: cannot listen on {listen}: ")
    broken = neardup("review", NEARDUP_CONTENT__URL="file:/nowhere")
    assert_one_line(broken, 1, "content.url: no folder /nowhere")


def test_tokens_of_moderators(neardup: Neardup) -> None:
    file = neardup.folder / "moderators.toml"
    assert_one_line(neardup("review", "--new-token", "Asha"), 2, "--new-token: name the file of the moderators first")
    assert_one_line(neardup("review", "--rights", "read"), 2, "--rights, --languages: only --new-token takes them")

    def review(*arguments: str) -> Ended:
        return neardup("review", *arguments, NEARDUP_REVIEW__MODERATORS=str(file))

    assert_one_line(review(), 2, f"review.moderators: cannot read {file}")
    token = review("--new-token", "आशा", "--rights", "read", "--languages", "hi,MARATHI").out.strip()
    assert token and token not in file.read_text(encoding="utf-8")
    assert tomllib.loads(file.read_text(encoding="utf-8"))["आशा"]["languages"] == ["HINDI", "MARATHI"]
    assert_one_line(review("--new-token", "आशा"), 2, "has a token")
    assert_one_line(review("--new-token", "x", "--rights", "all"), 2, "a right is one of read, decide")
    assert_one_line(review("--new-token", "x", "--languages", "zz"), 2, "unknown language 'zz'")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.usefixtures("flagged")
def test_a_signal_stops_it(neardup: Neardup, number: int) -> None:
    command = neardup.command("review", "--listen", "127.0.0.1:0")
    with subprocess.Popen(command, env=neardup.env, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", process.stderr.readline())
        assert found
        with socket.create_connection(("127.0.0.1", int(found[1]))):  # an idle connection must not delay the stop
            process.send_signal(number)
            assert process.wait(TIMEOUT_SECONDS) == 0
        assert "Traceback" not in process.stderr.read()


TEXT = prose(1, 200).split()


def test_permissions_by_command(make_neardup: Callable[..., Neardup], tmp_path: Path) -> None:
    neardup = make_neardup(write(tmp_path / "corpus", []))
    assert_one_line(neardup("permit", "--by", "asha"), 1, "no ledger")
    with closing(connect(neardup.ledger)) as db:
        source = [CopiedFrom(TEXT, [(0, 0, 200)], "asha")]
        write_copying_story(tmp_path / "corpus" / "pages", db, 1001, HINDI, TEXT, source, author="ravi")

    def exported(*options: str) -> int:
        return neardup("export", "--format", "jsonl", *options).out.count("\n")

    assert (
        neardup("permit", "--by", "asha", "--story", "1000", "--to", "ravi", "--licence", "CC BY", "--as", "A").code
        == 0
    )
    assert (exported(), exported("--status", "permitted")) == (0, 1)
    page = neardup("export", "--format", "html", "--status", "permitted").out
    assert "permitted by permission 1, <bdi>CC BY</bdi>" in page
    [listed] = neardup("permit", "--json").facts["permissions"]
    assert (listed["story_id"], listed["entered_by"], listed["state"]) == (1000, "A", "in_force")
    assert "CC BY" in neardup("permit").out
    for arguments, why in (
        (("--by", "ravi", "--story", "1000"), "is by author asha"),
        (("--by", "asha", "--story", "1000", "--serial", "7"), "only one of story_id, serial"),
        (("--by", "asha", "--until", "soon"), "until: 'soon' is not"),
        (("--by", "asha", "--revoke", "1"), "exclude each other"),
        (("none.csv",), "none.csv: No such file"),
        (("--revoke", "7"), "there is no permission 7"),
    ):
        ended = neardup("permit", *arguments)
        assert ended.code in (1, 2)
        assert_one_line(ended, ended.code, why)
    assert neardup("permit", "--revoke", "1").code == 0
    assert exported() == 1
    (neardup.folder / "permissions.csv").write_text("granted_by,granted_to,until\nasha,ravi,2999-01-01\n", "utf-8")
    assert neardup("permit", "permissions.csv").code == 0 and exported() == 0
    with closing(connect(neardup.ledger)) as db, transaction(db):
        db.execute("UPDATE permissions SET until = ?", (now_ms(),))  # as time passes
    assert exported() == 1, "an export does not see that a term has ended"
    assert neardup("permit").out.strip() == "No permissions."


HEAD = ["story_id", "original_id", "original_text", "complainant", "contact", "statement"]
COPY, ORIGINAL = "4104002", "4104000"


def write_rows(path: Path, *rows: list[str], head: list[str] = HEAD) -> Path:
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def test_complaints_of_a_file_are_recorded_or_named(backfilled: Neardup, tmp_path: Path) -> None:
    person = ["Meera", "meera@example.com", "यह मेरी है,\nपूरी"]
    rows = [
        [COPY, ORIGINAL, "", *person],
        [COPY, ORIGINAL, "", *person],
        ["77", "", "", *person],
        [COPY, "", "", *person],
        [COPY, "", "दो शब्द", *person],
        [COPY, "", prose(2, 30_000), *person],
    ]
    ended = backfilled("complaints", "--add", str(write_rows(tmp_path / "a.csv", *rows)))
    assert ended.code == 1
    recorded = [line.partition(", due")[0] for line in ended.out.splitlines()]
    assert recorded == ["line 3: complaint 1", "line 9: complaint 2", "line 13: complaint 3"]
    for words in (
        "line 5: this is complaint 1",
        "line 7: the story is not on record",
        "line 11: the text of",
        "3 rows",
    ):
        assert words in ended.err, ended.err
    listed = backfilled("complaints", "--json")
    assert [complaint["evidence"]["compared_with"] for complaint in listed.rows] == ["story", "all", "text"]
    assert "meera" not in listed.out.lower()
    assert f"1  story {COPY}  due " in backfilled("complaints").out
    assert backfilled("complaints", "--closed").out == "No closed complaints.\n"
    for path, words in (
        (tmp_path / "absent.csv", "cannot read"),
        (write_rows(tmp_path / "b.csv", head=HEAD[1:]), "no column story_id"),
        (write_rows(tmp_path / "c.csv", head=[*HEAD, "colour"]), "unknown column colour"),
        (write_rows(tmp_path / "d.csv", [*["x"] * 7]), "more cells than columns"),
    ):
        assert_one_line(backfilled("complaints", "--add", str(path)), 2, "--add", words)


Make = Callable[..., Neardup]
MAX_BYTES = 30_000
LABELS = dict(zip(SAMPLED, [*SAMPLED[1:], SAMPLED[0]], strict=True))
SHORT = {language: " ".join(stories[0].split()[:100]) for language, stories in STORIES.items()}


def page_of(reason: str, language: Language) -> str:
    """A page that a run marks for this reason, or a plain one."""
    text = SHORT[language]
    return {
        "truncated": f"<p>{text}</p><!--{'x' * MAX_BYTES}",
        "hidden": f"<p>{text}</p><p style='display:none'>{text} {text}</p>",
        "look_alikes": f"<p>{text.replace(' ', chr(0x200B) * 4 + ' ')}</p>",
        "controls": f"<p>{chr(2).join(text)}</p>",
        "empty": "<p></p>",
        "not_text": "\x01\x02" * 500,
    }.get(reason, f"<p>{text}</p>")


PAGES = ("plain", "truncated", "hidden", "look_alikes", "controls", "empty", "not_text", "mislabelled")


def marked_run(make_neardup: Make, tmp_path: Path) -> tuple[Neardup, list[tuple[str, Language]]]:
    """A backfill of a page of each reason in each language, and these by their id."""
    rows, pages = ["id,language,path,author_id,title"], tmp_path / "pages"
    pages.mkdir()
    stories = [(reason, language) for reason in PAGES for language in SAMPLED]
    for n, (reason, language) in enumerate(stories):
        (pages / f"{n}.html").write_text(page_of(reason, language), encoding="utf-8")
        label = LABELS[language] if reason == "mislabelled" else language
        rows.append(f"{n},{label},{n}.html,a{n % 3},{reason} {n}")
    (tmp_path / "manifest.csv").write_text("\n".join(rows), encoding="utf-8")
    config = embedded(tmp_path / "manifest.csv", pages).replace('body = "article .story, div.post-body"', "")
    neardup = make_neardup(config.replace("[content]", f"[content]\nmax_bytes = {MAX_BYTES}"))
    ran = neardup("backfill", "--json")
    assert ran.facts["skipped"] == {"empty": len(SAMPLED), "not_text": len(SAMPLED)}, "a mark changed an outcome"
    return neardup, stories


def test_marked_stories_are_counted_and_listed(make_neardup: Make, tmp_path: Path) -> None:
    neardup, stories = marked_run(make_neardup, tmp_path)
    marks = {
        (facts["reason"], facts["language"], facts["detail"], facts["example"]): facts["stories"]
        for facts in neardup("status", "--json").facts["marks"]
    }
    details = {"truncated": "size"}
    expected = {
        (reason, language, details.get(reason, ""), n): 1
        for n, (reason, language) in enumerate(stories)
        if reason not in {"plain", "mislabelled"}
    }
    expected |= {
        (reason, LABELS[language], SHIPPED[language].script, n): 1
        for n, (reason, language) in enumerate(stories)
        if reason == "mislabelled" and SHIPPED[language].script != SHIPPED[LABELS[language]].script
    }
    assert marks == expected
    shown = neardup("status").out
    assert "mislabelled: TAMIL Devanagari 1, such as story 73" in shown
    assert "hidden: HINDI 1, such as story 20" in shown

    hidden = neardup("suspects", "--reason", "hidden", "--json").facts
    assert hidden["by_reason"] == {"hidden": len(SAMPLED)}
    assert {
        (suspect["story_id"], suspect["language"], suspect["author_id"], suspect["title"])
        for suspect in hidden["suspects"]
    } == {
        (n, language, f"a{n % 3}", f"hidden {n}") for n, (reason, language) in enumerate(stories) if reason == "hidden"
    }
    assert "marked as hidden 67 %" in neardup("show", "24").out
    [mark] = neardup("show", "24", "--json").facts["marks"]
    assert mark == {"reason": "hidden", "detail": "67 %"} and not neardup("show", "4", "--json").facts["marks"]
    for command in (("show", "50"), ("case", "50"), ("compare", "50", "4")):
        assert_one_line(neardup(*command), 1, "story 50 has no fingerprint: it is marked as empty")
    tamil = neardup("suspects", "--language", "ta", "--author", "a2").out
    assert tamil.startswith("2  (controls 1, truncated 1)")
    assert "controls 50 %" in tamil and "truncated size" in tamil
    total = neardup("suspects", "--json").facts["stories"]
    authors = neardup("suspects", "--by", "author", "--json").facts["authors"]
    assert sum(author["stories"] for author in authors) == total == len(expected)
    assert f"and {total - 3:,} more; --json prints all" in neardup("suspects", "--limit", "3").out
    assert neardup("suspects", "--reason", "over_budget").out == "No suspects.\n"
    assert_one_line(neardup("suspects", "--language", "klingon"), 2, "--language", "klingon")
    for wrong in (("--reason", "old"), ("--by", "title"), ("--limit", "0")):
        assert_one_line(neardup("suspects", *wrong), 2, "Invalid value", wrong[0])


def test_without_a_ledger_nothing_is_listed(neardup: Neardup) -> None:
    assert_one_line(neardup("suspects"), 1, "no ledger")
