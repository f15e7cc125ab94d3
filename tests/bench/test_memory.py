"""Laws of `make bench-memory`, with few stories."""

import csv
from pathlib import Path

from click.testing import CliRunner

from tests.bench import memory
from tests.bench.generated_store import COPY_EVERY, text_maker
from tests.bench.memory import Sample


def test_every_story_has_a_text_of_its_own_apart_from_the_copies() -> None:
    make_text, again = text_maker(), text_maker()
    texts = [make_text(n) for n in range(4 * COPY_EVERY)]
    assert texts == [again(n) for n in range(4 * COPY_EVERY)]
    assert len(set(texts)) == len(texts) - 1, "of three copies, one is exact and two have a changed word"
    assert texts[2 * COPY_EVERY] == texts[COPY_EVERY + 1]


def test_a_backfill_is_sampled_until_its_end(tmp_path: Path) -> None:
    into = tmp_path / "samples.csv"
    arguments = ["--stories", "60", "--every", "0.02", "--csv", str(into)]
    done = CliRunner().invoke(memory.main, arguments, catch_exceptions=False)
    assert done.exit_code == 0
    assert "60" in done.output.split()
    with into.open(encoding="utf-8") as file:
        samples = [Sample(*map(float, row)) for row in csv.reader(file)]  # type: ignore[arg-type]
    assert max(sample.processes for sample in samples) >= 3, "the reader processes count"
    assert all(0 <= sample.anonymous <= sample.total for sample in samples)
