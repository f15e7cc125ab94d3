"""The commands `show` and `export --by story`, on the bundled samples."""

import json

from tests.support.command import Neardup


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
