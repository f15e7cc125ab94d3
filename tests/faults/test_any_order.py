"""Laws: what users see follows from the set of stories, not from their order, the batches, the commands or the kills.

A story that many accounts repeat stays a story that many copy, however many they are.
"""

import random
from pathlib import Path

import pytest

from tests.support.faults.command_driver import Driver
from tests.support.faults.consistency import INDEXES
from tests.support.faults.histories import (
    BUCKETS,
    COMMON,
    EMPTY,
    LATEST,
    MOST,
    VOCABULARY,
    Author,
    Platform,
    differences,
    draw_history,
)
from tests.support.faults.kill_campaign import redis_for
from tests.support.faults.killed_command import STATEMENT
from tests.support.sampling import CHAOS, sample_cases

HISTORIES, DRAWN = 200, 10  # a run draws so many of them, and `make chaos` tries all
DAYS = 300


@pytest.mark.parametrize("index", INDEXES)
def test_what_users_see_follows_from_the_set_of_stories(index: str, driver: Driver, tmp_path: Path) -> None:
    with redis_for(index, tmp_path) as url:
        seeds, drawn = (range(INDEXES.index(index), end, len(INDEXES)) for end in (HISTORIES, DRAWN))
        for seed in sample_cases(seeds, len(drawn)):
            history = draw_history(random.Random(seed))
            turn = seed // len(INDEXES)
            most, bucket = MOST[turn % 2], BUCKETS[turn // 2 % len(BUCKETS)]
            platform = Platform(driver, tmp_path / "lived", index, url, most, bucket)
            platform.live_through(history)
            if history.steps[0].command[-1] == "--fresh":
                platform.run("sweep")
            reference = Platform(driver, tmp_path / "reference", "sqlite", most=most, bucket=bucket)
            reference.put(history.texts)
            reference.run("backfill", "--fresh")
            wrong = differences(platform.seen(), reference.seen())
            story = "\n".join(map(str, history.steps))
            assert not wrong, (
                f"history {seed}, max_matches {most}, max_bucket {bucket}:\n{story}\n"
                f"{len(wrong)} rows differ:\n" + "\n".join(wrong[:8])
            )


@pytest.mark.skipif(CHAOS < 2, reason="takes minutes; make chaos runs it")
def test_three_hundred_daily_runs_end_as_one_backfill(driver: Driver, tmp_path: Path) -> None:
    """Each day some stories come, one changes or goes now and then, and every tenth run is killed."""
    rng = random.Random(9)
    writer, texts, platform = Author(rng), dict[int, str](), Platform(driver, tmp_path / "lived", "sqlite")
    for day in range(DAYS):
        changes = {story: writer.write(story) for story in range(len(texts) + 1, len(texts) + 3)}
        if texts and rng.random() < 0.5:
            changed = rng.choice(list(texts))
            changes[changed] = writer.write(changed) if rng.random() < 0.7 else EMPTY
        texts |= changes
        platform.put(changes)
        if day % 10 == 9:
            platform.start("daily", at={"point": STATEMENT, "nth": rng.randint(1, LATEST)}).wait()
        platform.run("daily")
    platform.run("doctor")
    reference = Platform(driver, tmp_path / "reference", "sqlite")
    reference.put(texts)
    reference.run("backfill", "--fresh")
    assert differences(platform.seen(), reference.seen()) == []


def test_a_story_that_many_repeat_makes_nothing_common(driver: Driver, tmp_path: Path) -> None:
    """Exactly or with other words here and there, before and after more repeat it than make a passage common."""
    rng, copies = random.Random(8), 3 * COMMON
    story, disclaimer = rng.choices(VOCABULARY, k=300), rng.choices(VOCABULARY, k=60)

    def repeat(n: int) -> str:
        return " ".join(rng.choice(VOCABULARY) if n % 2 and rng.random() < 1 / 150 else word for word in story)

    def put(texts: dict[int, str]) -> None:
        platform.put(texts)
        platform.run("daily", "--since", "2020-01-01T00:00:00Z", batch=3)

    platform = Platform(driver, tmp_path, "sqlite")
    put({n: repeat(n) for n in range(1, COMMON + 1)})
    put({n: repeat(n) for n in range(COMMON + 1, copies + 1)})
    excerpt, others = copies + 1, range(copies + 2, 2 * copies)
    put({excerpt: " ".join([*rng.choices(VOCABULARY, k=40), *story[60:240], *rng.choices(VOCABULARY, k=80)])})
    put({n: " ".join([*rng.choices(VOCABULARY, k=200), *disclaimer]) for n in others})
    kinds = {pair: kind for pair, (kind, *_) in platform.seen()["flags"].items()}
    repeated = {(a, b) for b in range(1, copies + 1) for a in range(1, b)}
    assert repeated <= kinds.keys(), "copies of one story displaced each other"
    assert {kinds[pair] for pair in repeated} <= {"exact", "near", "similar"}
    assert {pair for pair, kind in kinds.items() if kind in {"partial", "passage"}} == {
        (n, excerpt) for n in range(1, copies + 1)
    }, "a part of the story is a copy of each, and what different stories share of none"
    assert kinds.keys() - repeated == {(n, excerpt) for n in range(1, copies + 1)}
