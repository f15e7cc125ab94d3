"""What candidates by rare words cost a daily run: `python -m tests.bench.rewritten`.

Daily runs over the same new stories among the same earlier ones take turns.  They differ in LEVELS: how many candidates
a story has that only its rare words nominate.  Such a candidate is an earlier story with a page, which shares two pairs
of rare words with the new one, and nothing else.  So what a level takes more than none is the cost of reading and
comparing texts.  nginx, Redis and the runs share the machine.

Real stories have about .06.  Of 153 pairs of chapters of a Bengali novel, rare words alone nominate 2 (.013); if one
new story in three is a chapter of a serial of 30, half of which is there, that makes .06 a story.  Of the pairs of
chapters of one book of the Bible they nominate .003 in three Indian languages, and .037 in English.  Of 1,894 documents
of prose in nine Indian languages each has .007 such candidates, and of all 5,954 real documents .38; three quarters of
these are of translations of the Bible.  So few documents cannot say how many chance makes among millions.
"""

import asyncio
import csv
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import numpy as np
import redis
from msgspec import Struct
from neardup.core.fingerprint.common_words import are_rare
from neardup.core.fingerprint.word_hashes import mix
from neardup.core.verify.text import Text
from neardup.ledger import Ledger, files, passages
from neardup.pipeline.passage_sync import open_passages
from neardup.records import Language

from tests.bench import report, subject
from tests.bench.other_programs import nginx
from tests.bench.pages import LANGUAGE, Story, bare_page, draw_vocabulary, stories
from tests.bench.passages import FLUSHED, rows
from tests.bench.report import Run, run_with_redis
from tests.bench.scale import StartState
from tests.support.resource_meter import Measured, machine, run_module
from tests.support.servers import redis_server

ROUNDS = 3
SEED = 1
LEAST = 0.001  # of all hashes of pairs: a story keeps the least two hundredths of its own
PAIRS = 2  # that a candidate shares
LEVELS = {"none": (1, 0), ".06 a story": (16, 1), ".5 a story": (10, 5)}  # one story in so many has so many candidates
EARLIER = 2  # new stories for each earlier one that has a page
EARLIER_PAGES = "earlier"

Words = list[str]


def draw_pairs(vocabulary: Words, count: int) -> list[Words]:
    """`count` pairs of rare words whose hashes are among the least."""
    hashes = Text(" ".join(vocabulary)).word_hashes
    rare = np.flatnonzero(are_rare(hashes))
    drawn = np.random.default_rng(SEED).choice(rare, (int(count / LEAST * 1.5), 2))
    is_least = mix(hashes[drawn[:, 0]] + hashes[drawn[:, 1]]) < np.uint64(LEAST * 2**64)
    return [[vocabulary[left], vocabulary[right]] for left, right in drawn[is_least][:count].tolist()]


def write_pages(folder: Path, count: int) -> None:
    """Write the pages of earlier stories and of new ones, and a manifest of those and, for each level, of these."""
    (folder / LANGUAGE).mkdir(parents=True)
    earlier, new = make_stories(count)
    _write(folder, EARLIER_PAGES, earlier)
    for name, of_level in new.items():
        _write(folder, name, of_level)


def make_stories(count: int) -> tuple[list[Story], dict[str, list[Story]]]:
    """The earlier stories, and for each level `count` new ones, whose ids are the level's own."""
    size, vocabulary = count // EARLIER, draw_vocabulary(random.Random(SEED))
    pairs = draw_pairs(vocabulary, PAIRS * size)
    made = list(stories(size + count, SEED, plant=False))
    new = dict[str, list[Story]]()
    for level, (name, (one_in, candidates)) in enumerate(LEVELS.items()):
        planted = PAIRS * candidates
        new[name] = [
            _insert(story, level * count, [] if n % one_in else pairs[n // one_in * planted :][:planted])
            for n, story in enumerate(made[size:])
        ]
    return [_insert(story, 0, pairs[PAIRS * n :][:PAIRS]) for n, story in enumerate(made[:size])], new


def _insert(story: Story, shift: int, pairs: list[Words]) -> Story:
    """A story with pairs of words at random places, and with a higher id."""
    words, rng = list(story.words), random.Random(story.id)
    for pair in pairs:
        at = rng.randrange(len(words))
        words[at:at] = pair
    return Story(story.id + shift, words, copy=False)


def _write(folder: Path, name: str, listed: list[Story]) -> None:
    (folder / name).mkdir()
    with (folder / name / "manifest.csv").open("w", encoding="utf-8", newline="") as file:
        manifest = csv.writer(file)
        manifest.writerow(("id", "language"))
        for story in listed:
            (folder / LANGUAGE / f"{story.id}.html").write_text(bare_page(story), encoding="utf-8")
            manifest.writerow((story.id, LANGUAGE))


async def fill_passages(path: Path, held: int) -> None:
    """Fill the passage index of a ledger with random hashes of its stories."""
    ledger = Ledger(path)
    index = await open_passages(ledger)
    for first in range(1, held + 1, FLUSHED):
        last = min(first + FLUSHED - 1, held)
        index.insert(list(rows(first, last)))
        index.flush(first, last, last)
    await ledger.do(passages.prune_hashes, held)
    ledger.close()


class Bed(Struct, frozen=True):
    """The pages, the store that serves them, and the earlier stories on record, from which each run starts."""

    pages: Path
    endpoint: str
    start: StartState

    def run_daily(self, name: str, *, kept: bool = False) -> Run:
        """A daily run over the stories of a manifest; it is `kept` where later runs are to start from what it wrote."""
        with TemporaryDirectory(dir=self.start.folder.parent) as work, self._redis() as (url, client):
            ledger = Path(work, "neardup.db")
            _copy_ledger(self.start.ledger, ledger)
            config = ledger.with_name("config.toml")
            text = subject.served_config(self.pages / name, self.endpoint, url)
            config.write_text(text.replace("[ledger]", 'layout = "compact"\n[ledger]'), encoding="utf-8")
            run = run_with_redis(client, lambda: Measured(**run_module(subject.__name__, config, "daily")))
            if kept:
                _copy_ledger(ledger, self.start.ledger)
                client.save()
        return run

    @contextmanager
    def _redis(self) -> Iterator[tuple[str, redis.Redis]]:
        with (
            redis_server(self.start.folder, *self.start.settings("compact")) as url,
            redis.Redis.from_url(url, socket_timeout=None) as client,
        ):
            yield url, client


def _copy_ledger(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    shutil.copytree(files.name_passages_folder(source), files.name_passages_folder(target), dirs_exist_ok=True)


@contextmanager
def make_bed(folder: Path, new: int, held: int) -> Iterator[Bed]:
    """A bed of so many new stories and so many earlier ones without pages."""
    pages, start = folder / "pages", StartState(folder / "start")
    write_pages(pages, new)
    start.folder.mkdir()
    start.fill("uniform", held, {Language(LANGUAGE): 1}, ["compact"])
    asyncio.run(fill_passages(start.ledger, held))
    with nginx(pages, "stories", folder / "nginx") as (endpoint, _):
        bed = Bed(pages, endpoint, start)
        bed.run_daily(EARLIER_PAGES, kept=True)
        yield bed


@click.command()
@click.option("--stories", "new", default=4_000, show_default=True, type=click.IntRange(min=1))
@click.option("--held", default=300_000, show_default=True, type=click.IntRange(min=1))
def main(new: int, held: int) -> None:
    """Measure daily runs over new stories among those held, with candidates by rare words and without."""
    with TemporaryDirectory(prefix="neardup-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # nginx reads the pages as another user
        with make_bed(folder, new, held) as bed:
            runs: dict[str, list[Run]] = {level: [] for level in LEVELS}
            for turn in range(ROUNDS):
                for level, of_level in runs.items():
                    click.echo(f"round {turn + 1} of {ROUNDS}: {level}", err=True)
                    of_level.append(bed.run_daily(level))
    click.echo(f"{machine()}; nginx, Redis and runs share the cores; medians of {ROUNDS} rounds")
    click.echo(f"{new:,} new stories, {held:,} held\n")
    report.show_beds(runs, next(iter(LEVELS)))


if __name__ == "__main__":
    main()
