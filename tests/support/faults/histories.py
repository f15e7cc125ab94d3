"""Draws histories of a small platform: stories come, change and go, by any command, which may be killed on the way.

The stories share what stories share: a prayer inside some, a disclaimer of short ones, a story that many accounts
repeat, passages, and a few words a chapter of serials.  COMMON is so low that any of these may be common at one time
and not at another.
"""

import json
import random
import shutil
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import redis
from msgspec import Struct, field

from tests.support.command import embedded
from tests.support.faults.command_driver import Driver, StartedCommand, StopPoint
from tests.support.faults.killed_command import STATEMENT

COMMON = 4  # detection.common_passage
STORIES = 30
AUTHORS = 3  # each of whom writes a serial
LATEST = 1_500  # statements after which a command is killed
EMPTY = ""
LETTERS = [chr(code) for code in range(0x0915, 0x0939)]
VOCABULARY = [a + b + c for a in LETTERS[::3] for b in LETTERS[1::3] for c in LETTERS[2::3]]
MOST = 3, 500  # detection.max_matches: so few that many stories have more, or so many that none has
BUCKETS = 3, 4, 5, 6  # detection.max_bucket: many buckets have more members
CONFIGURATION = "[detection]\ncommon_passage = {common}\nmax_matches = {most}\nmax_bucket = {bucket}\n"
# What users see: numbers, times and the order of rows may differ.
SEEN = {
    "flags": "SELECT a, b, kind, severity, strength, joins_clusters, hamming, jaccard, containment_a, containment_b,"
    " longest_run_words, estimated, signals, hex(spans_a), hex(spans_b), status FROM flags"
    " WHERE status <> 'withdrawn'",
    "near misses": "SELECT a, b, hamming, jaccard, containment_a, containment_b, longest_run_words, estimated, signals"
    " FROM candidates WHERE hamming IS NOT NULL AND verified_at IS NOT NULL",
    "pending": "SELECT a, b FROM candidates WHERE verified_at IS NULL",
    "similarities": "SELECT * FROM similarities",
    "cases": "SELECT case_id, lead, similarity, severity, kinds, statuses, flags, open_flags, stories,"
    " is_ordered FROM cases",
    "chapters": "SELECT * FROM chapter_pairs",
    "common passages": "SELECT DISTINCT hash FROM common_passages",
    "stories": "SELECT id, language, text_hash FROM stories",
}
Texts = dict[int, str]  # by the ids of stories; EMPTY for a story whose page has no text any more


class Step(Struct, frozen=True):
    """What changes before a command, the command, and the batches in which it writes."""

    changes: Texts
    forgotten: tuple[int, ...]
    command: tuple[str, ...]
    batch: int
    kills: tuple[StopPoint, ...]

    def __str__(self) -> str:
        kills = [at["nth"] for at in self.kills]
        edits = {story: len(text.split()) for story, text in self.changes.items()}
        return f"words {edits}, forget {self.forgotten}, {' '.join(self.command)}, batch {self.batch}, kills {kills}"


class History(Struct, frozen=True):
    """Steps, and the texts of the stories that there are in the end."""

    steps: list[Step] = field(default_factory=list)
    texts: Texts = field(default_factory=dict)


def draw_history(rng: random.Random) -> History:
    """A history of three to five steps."""
    history, writer = History(), Author(rng)
    waiting = list(range(1, STORIES + 1))
    rng.shuffle(waiting)
    steps = rng.randint(3, 5)
    for n in range(steps):
        left = steps - n
        new, waiting = waiting[: len(waiting) // left], waiting[len(waiting) // left :]
        changes = {story: writer.write(story) for story in new}
        present = [story for story, text in history.texts.items() if text]
        for story in rng.sample(present, min(len(present), rng.randint(0, 5))):
            changes[story] = writer.write(story) if rng.random() < 0.5 else EMPTY
        forgotten = tuple(rng.sample(present, 1)) if present and rng.random() < 0.3 else ()
        command = draw_command(rng, is_first=n == 0, is_last=left == 1)
        kills = tuple({"point": STATEMENT, "nth": rng.randint(1, LATEST)} for _ in range(rng.choice((0, 0, 1, 2))))
        history.steps.append(Step(changes, forgotten, command, rng.choice((1, 3, 7, 100)), kills))
        history.texts.update(changes)
        for story in forgotten:
            history.texts[story] = EMPTY
    return history


def draw_command(rng: random.Random, *, is_first: bool, is_last: bool) -> tuple[str, ...]:
    """A command that lists stories; what it leaves to a sweep must be swept in the end."""
    commands: list[tuple[str, ...]] = [("backfill",), ("daily", "--since", "2020-01-01T00:00:00Z")]
    if is_first:
        commands.append(("backfill", "--fresh"))
    return rng.choice(commands)


class Author:
    """Writes texts that share parts with each other."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._prayer, self._disclaimer, self._repeated = self._words(45), self._words(60), self._words(150)
        self._source = self._words(200)
        self._chapters = [self._words(60) for _ in range(STORIES // AUTHORS + 1)]
        self._tale = [word for rare in self._words(100) for word in (rare, "है")]

    def _words(self, count: int) -> list[str]:
        return self._rng.choices(VOCABULARY, k=count)

    def write(self, story: int) -> str:
        """The text of a new story; a chapter has a few words of what the same chapter of another serial has."""
        own = self._words(self._rng.choice((60, 120, 200)))
        if self._rng.random() < 0.8:
            own[:0] = self._chapters[story // AUTHORS % len(self._chapters)]
        kinds = "own", "prayer", "prayer", "disclaimer", "repeated", "edited", "longer", "passage", "rewritten"
        match self._rng.choice(kinds):
            case "prayer":
                own[len(own) // 2 : len(own) // 2] = self._prayer
            case "disclaimer":
                own = [*own[:45], *self._disclaimer]
            case "repeated":
                own = self._repeated
            case "edited":
                own = [self._words(1)[0] if self._rng.random() < 1 / 17 else word for word in self._repeated]
            case "longer":
                own = [*self._repeated, *own]
            case "rewritten":
                step = self._rng.choice((3, 5))
                own = [self._words(1)[0] if n % step == 0 else word for n, word in enumerate(self._tale)]
            case "passage":
                start = self._rng.randrange(100)
                own = [*own, *self._source[start : start + 100], *self._words(40)]
        return " ".join(own)


class Platform:
    """A folder with stories, a ledger and an index of one of the INDEXES; `url` is a Redis, which is emptied."""

    def __init__(  # noqa: PLR0917 - what a configuration says
        self, driver: Driver, folder: Path, index: str, url: str = "", most: int = MOST[-1], bucket: int = BUCKETS[0]
    ) -> None:
        self._driver, self._folder = driver, folder
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "stories").mkdir(parents=True)
        self._rows: dict[int, dict[str, str]] = {}
        self._changes = 0
        layout = "" if index == "sqlite" else f'layout = "{index}"\n'
        config = embedded(folder / "stories.jsonl", folder / "stories", url or "sqlite:")
        detection = CONFIGURATION.format(common=COMMON, most=most, bucket=bucket)
        (folder / "config.toml").write_text(config.replace("[ledger]", f"{layout}[ledger]") + detection)
        if url:
            with redis.Redis.from_url(url) as client:
                client.flushall()

    def put(self, texts: Mapping[int, str]) -> None:
        """Write pages, and list them as changed."""
        for story, text in texts.items():
            self._changes += 1
            page = f'<article><div class="story"><p>{text}</p></div></article>'
            (self._folder / "stories" / f"{story}.html").write_text(page, encoding="utf-8")
            time = f"2025-01-{1 + self._changes // 1440:02}T{self._changes // 60 % 24:02}:{self._changes % 60:02}:00Z"
            published = f"2024-01-{1 + story % 28:02}T00:00:00Z"
            self._rows[story] = {
                "id": str(story),
                "language": "hi",
                "path": f"{story}.html",
                "published_at": published,
                "updated_at": time,
                "author_id": str(story % AUTHORS),
                "title": f"कथा भाग {story // AUTHORS}",
            }
        lines = "".join(json.dumps(row) + "\n" for row in self._rows.values())
        (self._folder / "stories.jsonl").write_text(lines, encoding="utf-8")

    def start(self, *arguments: str, at: StopPoint | None = None, batch: int = 100) -> StartedCommand:
        return self._driver.start(self._folder, *arguments, at=at, NEARDUP_RUN__BATCH=str(batch))

    def run(self, *arguments: str, batch: int = 100) -> None:
        done = self.start(*arguments, batch=batch)
        assert done.wait() == 0, done.stderr()

    def live_through(self, history: History) -> int:
        """Play the steps; returns how many commands were killed."""
        killed = 0
        for step in history.steps:
            self.put(step.changes)
            for story in step.forgotten:
                self.run("forget", str(story))
            for at in step.kills:
                killed += self.start(*step.command, at=at, batch=step.batch).wait() == -9
            self.run(*step.command, batch=step.batch)
        return killed

    def seen(self) -> dict[str, dict[Any, tuple[Any, ...]]]:
        """The rows of SEEN, by table and by their first columns."""
        with closing(sqlite3.connect(self._folder / "neardup.db")) as db:
            return {name: dict(_keyed(name, db.execute(query).fetchall())) for name, query in SEEN.items()}


def _keyed(name: str, rows: list[tuple[Any, ...]]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    columns = 2 if name in {"flags", "near misses", "pending", "chapters"} else 1
    return ((row[:columns], row[columns:]) for row in rows)


def differences(found: Mapping[str, dict[Any, Any]], expected: Mapping[str, dict[Any, Any]]) -> list[str]:
    """A line for each row that two platforms do not show alike."""
    return [
        f"{name} {key}: {found[name].get(key)} instead of {rows.get(key)}"
        for name, rows in expected.items()
        for key in sorted(found[name].keys() | rows.keys())
        if found[name].get(key) != rows.get(key)
    ]
