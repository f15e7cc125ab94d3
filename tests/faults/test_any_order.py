"""Law: what users see follows from the set of stories, not from their order, the batches, the commands or the kills."""

import random
from pathlib import Path

import pytest

from tests.support.faults.command_driver import Driver
from tests.support.faults.consistency import INDEXES
from tests.support.faults.histories import Platform, differences, draw_history
from tests.support.faults.kill_campaign import redis_for
from tests.support.sampling import CHAOS

HISTORIES = 200 if CHAOS > 1 else 10


@pytest.mark.parametrize("index", INDEXES)
def test_what_users_see_follows_from_the_set_of_stories(index: str, driver: Driver, tmp_path: Path) -> None:
    with redis_for(index, tmp_path) as url:
        for seed in range(INDEXES.index(index), HISTORIES, len(INDEXES)):
            history = draw_history(random.Random(seed))
            platform = Platform(driver, tmp_path / "lived", index, url)
            platform.live_through(history)
            if history.steps[0].command[-1] == "--fresh":
                platform.run("sweep")
            reference = Platform(driver, tmp_path / "reference", "sqlite")
            reference.put(history.texts)
            reference.run("backfill", "--fresh")
            wrong = differences(platform.seen(), reference.seen())
            story = "\n".join(map(str, history.steps))
            assert not wrong, f"history {seed}:\n{story}\n{len(wrong)} rows differ:\n" + "\n".join(wrong[:8])
