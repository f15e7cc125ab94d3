"""Laws of `make bench-scale` that hold at any size, tested at a two-thousandth of the full size; and of synthetic
stories: they follow their distribution, are the same for the same seed, and contain the planted copies.
"""

import json
import os
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog
from click.testing import CliRunner
from neardup.core.fingerprint.minhash import count_agreeing_rows
from neardup.core.fingerprint.word_hashes import measure_hamming
from neardup.records import Language

from tests.bench import scale, scale_stages
from tests.bench.scale_stages import INDEXES, LAYOUTS, TIERS, Figures, Setup, in_own_process, run_stage
from tests.support import synthetic
from tests.support.languages import ODIA, SAMPLED
from tests.support.synthetic import BAND_VALUES, CHUNK, PLATFORM, Distribution, Stories, collisions

SIZES = [493, 1975, 7900]

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """The figures at each size; the stages run in this process, because to start processes takes most of the time."""
    logging = structlog.get_config()
    with pytest.MonkeyPatch.context() as patch:
        for module in (scale, scale_stages):
            patch.setattr(module, "in_own_process", run_stage)
        done = CliRunner().invoke(scale.main, ["--size", "1/2000", "--only", "prose", "--json"], catch_exceptions=False)
    structlog.configure(**logging)
    return list(json.loads(done.stdout.splitlines()[-1])["measured"])


async def process_id(setup: Setup) -> Figures:
    return {"process": os.getpid()}


def test_each_stage_has_a_process_of_its_own(tmp_path: Path) -> None:
    figures = in_own_process(process_id, Setup(tmp_path / "neardup.db"))
    assert figures["process"] != os.getpid()
    assert figures["peak_rss_mb"] > 0


def test_every_story_is_in_the_ledger_and_in_each_index(rows: list[Row]) -> None:
    assert [row["stories"] for row in rows] == SIZES
    for row in rows:
        assert sum(row["ledger"]["stories"].values()) == row["stories"]
        for name in [name for name in INDEXES if name in row]:
            built, after = row[name]["reindex"], row[name]["daily"]
            assert built["stories"] == sum(built["in_ledger"].values()) >= row["stories"], name
            assert built["in_index"] == built["in_ledger"], name
            assert after["in_index"] == after["in_ledger"], name
            added = sum(after["in_index"].values()) - built["stories"]
            assert added == row[name]["insert"]["stories"] + after["stories"], name
            assert set(built["in_index"]) == set(PLATFORM), name
        assert row["compact"]["reindex"]["in_ledger"] == row["ledger"]["stories"]


def test_every_planted_copy_is_found(rows: list[Row]) -> None:
    for row in rows:
        for name in [name for name in INDEXES if name in row]:
            for tier in TIERS:
                figures = row[name]["look_up"][tier]
                assert figures["large"] == 0, (name, tier)
                assert figures["planted"] > figures["lookups"] / 12, (name, tier)
                assert figures["recall"] == 1.0, (name, tier)


def test_all_indexes_nominate_the_same_pairs(rows: list[Row]) -> None:
    for row in rows:
        nominated = {name: row[name]["look_up"]["nominated"] for name in INDEXES if name in row}
        assert all(pairs == nominated["compact"] for pairs in nominated.values()), nominated
        assert nominated["compact"]["pairs"] > row["compact"]["look_up"]["both"]["lookups"] / 5


def test_bytes_add_up(rows: list[Row]) -> None:
    for row in rows:
        assert row["ledger"]["all"] == sum(row["ledger"]["tables"].values()) > 150 * row["stories"]
        for name in [name for name in INDEXES if name in row]:
            sizes = row[name]["bytes"]
            parts = [size for tiers in sizes["languages"].values() for size in tiers.values()]
            assert len(parts) == len(TIERS) * len(PLATFORM), name
            assert sum(parts) == pytest.approx(sizes["all"], rel=1e-3), name
        assert row["sqlite"]["bytes"]["all"] > 37 * 4 * row["stories"]


def test_the_compact_layout_is_smaller_than_the_documented_one(rows: list[Row]) -> None:
    for row in (rows[0], rows[-1]):
        compact, documented = (row[name]["bytes"]["languages"] for name in LAYOUTS)
        for language in PLATFORM:
            for tier in ("near", "signature"):
                assert compact[language][tier] < documented[language][tier], (row["stories"], language, tier)


def test_a_sweep_finds_the_copies_among_the_stories(rows: list[Row]) -> None:
    for row in rows:
        assert row["sweep"]["stories"] == row["stories"]
        assert row["sweep"]["pairs"] > 0.01 * row["stories"]
        assert row["sweep"]["left_out"] == 0


def test_the_passage_index_takes_the_bytes_that_are_projected(rows: list[Row]) -> None:
    for figures in (row["passages"] for row in rows if "passages" in row):
        assert figures["build"]["bytes a story"] == pytest.approx(figures["build"]["projected"], rel=0.05)
        assert figures["check"]["damaged"] == 0


def test_the_passage_index_finds_the_planted_passages(rows: list[Row]) -> None:
    measured = [row["passages"] for row in rows if "passages" in row]
    assert len(measured) == 2
    for figures in measured:
        assert figures["join"]["pairs"] == pytest.approx(figures["join"]["planted"], rel=0.05)
        assert figures["warm"]["stories found"] == figures["cold"]["stories found"] > figures["join"]["pairs"]


UNIFORM = 1 / BAND_VALUES


@pytest.mark.parametrize("language", SAMPLED)
def test_bands_collide_as_often_as_the_distribution_predicts(language: Language) -> None:
    prose = synthetic.prose(language)
    stories = synthetic.draw(np.random.default_rng(1), prose, 20_000)
    signature_collisions = collisions(stories.signatures.view(np.uint16), BAND_VALUES).mean()
    simhash_collisions = collisions(stories.simhashes.view(np.uint16), BAND_VALUES).mean()
    assert prose.signature_collision() > 1.3 * UNIFORM < prose.simhash_collision(), "prose must be skewed"
    assert signature_collisions == pytest.approx(prose.signature_collision(), rel=0.1)
    assert simhash_collisions == pytest.approx(prose.simhash_collision(), rel=0.1)


def test_uniform_bands_collide_by_chance() -> None:
    uniform = synthetic.uniform()
    assert uniform.signature_collision() == pytest.approx(UNIFORM)
    assert uniform.simhash_collision() == pytest.approx(UNIFORM)


@pytest.mark.parametrize("make", [synthetic.uniform, partial(synthetic.prose, ODIA)], ids=["uniform", "prose"])
def test_a_seed_gives_the_same_stories_in_chunks_or_at_once(make: Callable[[], Distribution]) -> None:
    distribution = make()
    count = CHUNK + 100
    whole = synthetic.draw(np.random.default_rng(7), distribution, count)
    parts = [*synthetic.draw_chunks(np.random.default_rng(7), distribution, count)]
    assert [len(part) for part in parts] == [CHUNK, 100]
    for column in Stories.__struct_fields__:
        assert np.array_equal(np.concatenate([getattr(part, column) for part in parts]), getattr(whole, column))


def test_the_requested_share_are_copies() -> None:
    [stories] = synthetic.draw_chunks(np.random.default_rng(7), synthetic.uniform(), 1000, copies=0.2)
    left, right = np.array([*combinations(range(1000), 2)]).T
    halves = stories.simhashes.view(np.uint64)
    near = measure_hamming(halves[left], halves[right]) <= 3
    similar = count_agreeing_rows(stories.signatures[left], stories.signatures[right]) >= 10
    assert near.sum() == 100, "half of the copies must be near"
    assert (near & similar).sum() == 100, "near copies must keep most of their signatures"
    assert 190 <= similar.sum() <= 200, "nearly all copies must agree in at least 10 of 64 rows"
