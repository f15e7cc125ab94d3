"""What an audit reads to nominate its pairs, at full size: seconds and peak memory.

    python -m tests.bench.audit FOLDER [--stories 15800000]

fills a ledger with synthetic stories, and a passage index with passage hashes of its own, once; they take about 10 GB.
The texts of the pairs, of which there are none here, are read and verified as by `check`.
"""

import time
from pathlib import Path

import click
import numpy as np
from neardup.config import Detection
from neardup.index.passages.index import PassageIndex
from neardup.ledger import Ledger, read, self_checks, versions
from neardup.nomination.exhaustive import WideMatches, match_fingerprints, match_passages

from tests.bench import passages
from tests.bench.scale import fill
from tests.bench.scale_corpus import Corpus
from tests.bench.scale_stages import Figures, Setup, in_own_process
from tests.support.resource_meter import cpu_seconds

SAMPLE = 200


async def build(setup: Setup, stories: int) -> Figures:
    """Build the passage index."""
    return passages.build(_passages(setup), stories, merging=False)


async def nominate(setup: Setup, stories: int) -> Figures:
    """Compare the latest stories with all others, as an audit does."""
    ledger, index = Ledger(setup.ledger, read), PassageIndex(_passages(setup), "ledger", "1")
    ids = await ledger.do(self_checks.draw_latest, 0, SAMPLE)
    found = {story_id: WideMatches() for story_id in ids}
    first = (stories - 1) // passages.FLUSHED * passages.FLUSHED + 1
    hashes = [hashes for _, hashes in passages.rows(first, stories)][-SAMPLE:]
    began, used = time.perf_counter(), cpu_seconds()
    sample = await ledger.do(versions.read_existing_fingerprints, ids, ())
    compared = await match_fingerprints(ledger, sample, Detection(), found)
    between = time.perf_counter()
    own = dict(zip(ids, (np.unique(some) for some in hashes), strict=True))
    await match_passages(ledger, index, own, Detection().common_passage, found)
    ended = time.perf_counter()
    ledger.close()
    return {
        "compared": compared,
        "pairs": sum(len(nominated.ids()) for nominated in found.values()),
        "seconds, fingerprints": between - began,
        "seconds, passages": ended - between,
        "core-seconds": cpu_seconds() - used,
    }


def _passages(setup: Setup) -> Path:
    return setup.ledger.with_name("passages")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--stories", default=15_800_000)
def main(folder: Path, stories: int) -> None:
    """Build ledger and passage index if they are not there, and nominate."""
    folder.mkdir(parents=True, exist_ok=True)
    setup = Setup(folder / f"{stories}.db")
    if not setup.ledger.exists():
        fill(unfinished := folder / "unfinished.db", Corpus("prose"), stories)
        unfinished.rename(setup.ledger)
        in_own_process(build, setup, stories)
    click.echo(in_own_process(nominate, setup, stories))


if __name__ == "__main__":
    main()
