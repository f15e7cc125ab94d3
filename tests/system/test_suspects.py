"""A run over all languages marks the stories that are not what their listing or their page pretends, and lists them."""

from collections.abc import Callable
from pathlib import Path

from neardup.core.languages import SHIPPED
from neardup.records import Language

from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.languages import SAMPLED
from tests.support.sample_texts import STORIES

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
