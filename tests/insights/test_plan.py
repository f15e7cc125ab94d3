"""Laws of `plan`: what it projects from three sizes is what ledgers and indexes of other sizes really take."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.config import load
from neardup.core.candidates.banding import BAND_BITS
from neardup.index.redis import LAYOUTS, Layout
from neardup.insights import plan
from neardup.records import Language

from tests.support.generated_stories import configuration, generate
from tests.support.index_sizes import redis_bytes, sqlite_bytes
from tests.support.languages import HINDI, SAMPLED, TELUGU
from tests.support.synthetic import PLATFORM

MOST_OFF = 0.03
languages = st.sampled_from(list(SAMPLED))
counts = st.integers(0, 20_000_000)
indexes = st.sampled_from(plan.INDEXES)


async def test_the_embedded_index_is_as_large_as_projected(tmp_path: Path) -> None:
    sizes = {HINDI: 100_000, TELUGU: 40_000}
    projected = sum(plan.project_bytes("sqlite", sizes).values())
    assert projected == pytest.approx(await sqlite_bytes(sizes, tmp_path), rel=MOST_OFF), "`plan` projects another size"


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_redis_takes_as_much_as_projected(layout: Layout, tmp_path: Path) -> None:
    sizes = {HINDI: 45_000}
    projected = sum(plan.project_bytes(layout, sizes).values())
    measured = await redis_bytes(layout, sizes, tmp_path)
    assert projected == pytest.approx(measured, rel=MOST_OFF), "`plan` projects another size"


async def test_a_ledger_four_times_as_large_is_projected_from_a_sample(tmp_path: Path) -> None:
    generate(tmp_path, 3200)
    (tmp_path / "neardup.toml").write_text(configuration(tmp_path), encoding="utf-8")
    config = load(tmp_path / "neardup.toml")
    sample = await plan.read_sample(config, 800, lambda _: None)
    every = await plan.draw(config, 3200, plan.Sample(), lambda _: None)
    ledger, passages, _ = await plan.measure_run(config, every, plan.Sample())
    small, _, _ = await plan.measure_run(config, every[:200], plan.Sample())
    assert sample.listed == {HINDI: 3200}
    assert small + 3000 * sample.cost.ledger == pytest.approx(ledger, rel=MOST_OFF)
    assert 3200 * sample.cost.passages == pytest.approx(passages, rel=MOST_OFF)


@given(stories=counts, more=counts, index=indexes, language=languages)
def test_more_stories_take_more(stories: int, more: int, index: str, language: Language) -> None:
    few, many = (plan.project_bytes(index, {language: n})[language] for n in (stories, stories + more))
    assert 0 <= few <= many
    assert plan.project_seconds(index, stories) <= plan.project_seconds(index, stories + more)
    assert plan.GROWTHS[index].bytes(stories, BAND_BITS) >= stories * plan.GROWTHS[index].story


def test_only_the_compact_layout_fits_in_memory() -> None:
    memory = 8 << 30
    assert plan.project_days_until_full(PLATFORM, "documented", 10_000, memory) == 0
    days = plan.project_days_until_full(PLATFORM, "compact", 10_000, memory)
    assert days
    assert plan.project_days_until_full(PLATFORM, "compact", 20_000, memory) == pytest.approx(days / 2, abs=4)
    assert plan.project_days_until_full(PLATFORM, "compact", 0, memory) is None, (
        "without new stories, memory never fills up"
    )
    grown = {language: n * (1 + days * 10_000 / sum(PLATFORM.values())) for language, n in PLATFORM.items()}
    needed = plan.project_memory(grown, "compact")
    assert needed["needed"] <= memory
    assert needed.pop("needed") == sum(needed.values())
