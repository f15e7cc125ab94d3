"""Law: the next run detects copies in a language added to the configuration, and recomputes no other fingerprints."""

import csv
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
import redis

from tests.support.command import Neardup, embedded
from tests.support.servers import redis_server

SINHALA = """
[languages.SINHALA]
codes = ["si"]
script = "Sinhala"
golden = "ශ්\\u200dරී ලංකාවේ ගම් ෴ ක්\\u200dෂ; ඩො ඩෝ, පොත් 25ක් කියවීය."
"""
HINDI_WORDS = ["गाँव", "नदी", "कहानी", "पेड़", "बादल", "रात", "सड़क", "किताब", "माँ", "घर", "खेत", "चाँद", "हवा"]
SINHALA_WORDS = ["ගම", "ගඟ", "කතාව", "ගස", "වලාකුළ", "රාත්‍රිය", "පාර", "පොත", "අම්මා", "ගෙදර", "කුඹුර", "සඳ", "සුළඟ"]


def text(words: list[str], seed: int) -> str:
    """Two hundred words in an order that depends on the seed."""
    return " ".join(words[(n * n * seed + n // 7 * seed) % len(words)] + str(n * seed % 17) for n in range(200))


def write_stories(folder: Path, stories: dict[int, tuple[str, str]]) -> Path:
    """Write the pages of stories (id -> language and text); return the manifest that lists them."""
    for story_id, (language, story) in stories.items():
        page = folder / "html" / language / f"{story_id}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(f"<p>{story}</p>", encoding="utf-8")
    manifest = folder / "manifest.csv"
    with manifest.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "language"))
        rows.writerows((story_id, language) for story_id, (language, _) in stories.items())
    return manifest


def fingerprints(neardup: Neardup, max_id: int) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(neardup.ledger)) as db:
        return db.execute("SELECT number, id, simhash FROM stories WHERE id < ? ORDER BY id", (max_id,)).fetchall()


@pytest.mark.parametrize("kind", ["sqlite", "documented", "compact"])
def test_an_added_language_needs_no_new_fingerprints(
    tmp_path: Path, make_neardup: Callable[[str], Neardup], kind: str
) -> None:
    hindi = {n: ("HINDI", text(HINDI_WORDS, 3 + n // 2)) for n in range(1, 7)}
    later = {
        10: ("HINDI", text(HINDI_WORDS, 3)),  # the text of story 1
        **{n: ("SINHALA", text(SINHALA_WORDS, n // 2)) for n in range(20, 26)},
        30: ("KLINGON", text(HINDI_WORDS, 3)),
    }
    with nullcontext("sqlite:") if kind == "sqlite" else redis_server(tmp_path) as url:
        config = embedded(write_stories(tmp_path, hindi), tmp_path / "html", url)
        config = config.replace('body = "article .story, div.post-body"', "")
        if kind == "compact":
            config = config.replace(f'url = "{url}"', f'url = "{url}"\nlayout = "compact"')
        neardup = make_neardup(config)
        assert neardup("backfill").code == 0
        before = fingerprints(neardup, 10)

        write_stories(tmp_path, hindi | later)
        neardup.configure(config + SINHALA)
        ended = neardup("daily", "--json")
        assert ended.code == 0, ended.err
        assert fingerprints(neardup, 10) == before, "Hindi stories were fingerprinted again"

        with closing(sqlite3.connect(neardup.ledger)) as db:
            numbers = dict(db.execute("SELECT name, number FROM languages"))
            assert numbers["SINHALA"] == max(numbers.values()), "the added language did not get the next number"
            pairs = set(db.execute("SELECT a, b FROM flags WHERE status = 'open'"))
            dead = db.execute("SELECT reason FROM dead_letters").fetchall()
        assert {(1, 10), (2, 3), (20, 21), (22, 23), (24, 25)} <= pairs, "copies were missed"
        assert dead == [("bad_language",)]
        if kind == "compact":
            with redis.Redis.from_url(url) as client:
                assert b"SINHALA=13" in (client.get("neardup:bits") or b""), "an added language has the smallest width"
                assert client.exists("neardup:stories:si")
        page = tmp_path / "page.html"
        page.write_text(f"<p>{text(SINHALA_WORDS, 10)}</p>", encoding="utf-8")
        found = json.loads(neardup("check", str(page), "--language", "si", "--json").out)
        assert {match["story_id"] for match in found["matches"]} >= {20, 21}

        neardup.configure(config)
        refused = neardup("daily")
        assert refused.code != 0
        assert "[languages.SINHALA]" in refused.err, "removing a language with stories must be refused"

        neardup.configure(config + SINHALA.replace("කියවීය", "බැලීය"))
        refused = neardup("daily")
        assert refused.code != 0
        assert "fingerprints of SINHALA" in refused.err
        assert "HINDI" not in refused.err
