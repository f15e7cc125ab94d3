"""Measures the HTTP service under 50 checks a second: python -m tests.bench.serve [--stories N --seconds N --daily N]

The ledger holds 1,000,000 synthetic stories with passage hashes, and 2,000 stories with pages, in an object store that
answers after 20 ms.  The index is in Redis.  locust sends checks of stories of 1,000 words at random times, however
slow the answers are: half of them are edits of a story with a page, half are new.  Meanwhile a novel of 100,000 words
is checked again and again, and with --daily a daily run reads so many new stories, as those of a day.
"""

import argparse
import csv
import json
import math
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from tempfile import TemporaryDirectory

import neardup as client_library
import numpy as np
from msgspec.structs import replace
from neardup.core.fingerprint.common_words import are_rare
from neardup.core.fingerprint.compute import fingerprint_text
from neardup.core.verify.text import Text
from neardup.ledger import connect, outbox
from neardup.records import Fingerprinted, Language, Story

from tests.bench.report import out, table_of
from tests.bench.scale_corpus import Corpus
from tests.support.command import COMMON, Neardup
from tests.support.faults.bed import SERVED
from tests.support.languages import SAMPLED
from tests.support.s3_server import object_server
from tests.support.sample_texts import STORIES
from tests.support.servers import free_port, redis_server
from tests.support.service import serving
from tests.support.synthetic import commit

WORDS, NOVEL_WORDS = 1_000, 100_000
WITH_PAGES, FIRST_ID = 2_000, 1_000
FIRST_NEW_ID = 1 << 40  # of a daily run
MANIFEST = "day.csv"
HASHES = 59  # passage hashes of a story of 1,000 words
STORE_SECONDS = 0.02
NOVEL_EVERY_SECONDS = 10.0
SECONDS_BETWEEN = 4.0  # two requests of one user of tests.bench.serve_load
MOMENTS = (0, 0.25, 0.5, 0.75, 1)  # shares of the time, at which the memory is printed
RNG = random.Random(1)
# Of pairs of unrelated real texts, 0 to 1.6 % share a hash of rare pairs, and of these .1 %.  If some rare words were
# far more frequent than others, half of the pairs would, and a check would be compared with nearly every story.
RARE_WORDS = 5_000
COMMON_SHARE = 0.6  # of the words of a text


def _vocabulary(language: Language) -> tuple[list[str], list[float]]:
    """The common words of a language's samples and compounds of two of these, which are rare; cumulated frequencies.

    In prose the n-th word is 1 / n as frequent as the first.
    """
    words = dict.fromkeys(" ".join(STORIES[language]).split())
    common = [word for word in words if not are_rare(Text(word).word_hashes).any()]
    frequent = [1 / n for n in range(1, len(common) + 1)]
    shares = [COMMON_SHARE * frequency / sum(frequent) for frequency in frequent]
    rare = ["".join(RNG.choices(common, k=2)) for _ in range(RARE_WORDS)]
    return [*common, *rare], list(accumulate([*shares, *[(1 - COMMON_SHARE) / RARE_WORDS] * RARE_WORDS]))


VOCABULARIES = {language: _vocabulary(language) for language in SAMPLED}


def story_of(language: Language, words: int) -> list[str]:
    """Words of a language about as often as in prose."""
    known, frequencies = VOCABULARIES[language]
    return RNG.choices(known, cum_weights=frequencies, k=words)


def edited(words: list[str], language: Language) -> list[str]:
    """The same story with one word in 20 changed."""
    return [RNG.choice(VOCABULARIES[language][0]) if RNG.random() < 0.05 else word for word in words]


def synthetic(stories: int) -> Iterator[list[Fingerprinted]]:
    """Synthetic stories with random passage hashes."""
    rng = np.random.default_rng(1)
    for page in Corpus("prose").pages(stories):
        hashes = np.sort(rng.integers(0, 1 << 32, (len(page), HASHES), np.uint32), axis=1).astype("<u4")
        yield [
            replace(fingerprint, fingerprint=replace(fingerprint.fingerprint, passages=row.tobytes()))
            for fingerprint, row in zip(page, hashes, strict=True)
        ]


def fill(ledger: Path, pages: Path, stories: int) -> list[tuple[Language, list[str]]]:
    """Write the stories to the ledger; returns those with pages."""
    made = [(language := SAMPLED[n % len(SAMPLED)], story_of(language, WORDS)) for n in range(WITH_PAGES)]
    outcomes = []
    for n, (language, words) in enumerate(made):
        (pages / language).mkdir(parents=True, exist_ok=True)
        (pages / language / f"{FIRST_ID + n}.html").write_text(f"<p>{' '.join(words)}</p>", encoding="utf-8")
        fingerprint = fingerprint_text(" ".join(words))
        assert fingerprint is not None
        outcomes.append(Fingerprinted(Story(FIRST_ID + n, language, title=f"{n}"), fingerprint, None))
    with closing(connect(ledger)) as db:
        for page in synthetic(stories):
            commit(db, page)
        commit(db, outcomes)
        outbox.prune_changes(db, 0)
    return made


def write_bodies(path: Path, made: list[tuple[Language, list[str]]], count: int) -> None:
    """Write the bodies of so many checks, one a line."""
    with path.open("w", encoding="utf-8") as file:
        for n in range(count):
            language, words = RNG.choice(made)
            text = edited(words, language) if n % 2 else story_of(language, WORDS)
            file.write(json.dumps({"language": language, "text": " ".join(text)}, ensure_ascii=False) + "\n")


def write_day(folder: Path, stories: int) -> None:
    """Write the pages of new stories, and the manifest that lists them."""
    with (folder / MANIFEST).open("w", encoding="utf-8") as manifest:
        manifest.write("id,language\n")
        for n in range(stories):
            language, story_id = SAMPLED[n % len(SAMPLED)], FIRST_NEW_ID + n
            manifest.write(f"{story_id},{language}\n")
            text = " ".join(story_of(language, WORDS))
            (folder / "pages" / language / f"{story_id}.html").write_text(f"<p>{text}</p>", encoding="utf-8")


def run_daily(neardup: Neardup, summaries: list[dict[str, float]]) -> None:
    """Do a daily run, and append its summary; without canaries, because few of the stories have pages."""
    env = neardup.env | {"NEARDUP_RUN__CANARIES": "0"}
    done = subprocess.run(
        neardup.command("daily", "--json"), env=env, cwd=neardup.folder, stdout=subprocess.PIPE, check=True
    )
    summaries.append(json.loads(done.stdout.splitlines()[-1]))


def check_novels(url: str, stop: threading.Event, seconds: list[float]) -> None:
    """Check a novel again and again; appends the seconds that each took, infinity for one that was refused."""
    with client_library.Client(url, timeout=60, attempts=1) as client:
        while not stop.wait(NOVEL_EVERY_SECONDS):
            language = SAMPLED[len(seconds) % len(SAMPLED)]
            text, began = " ".join(story_of(language, NOVEL_WORDS)), time.perf_counter()
            try:
                client.check(language=language, text=text)
                seconds.append(time.perf_counter() - began)
            except client_library.ServiceError:
                seconds.append(math.inf)


def load(url: str, folder: Path, rate: float, seconds: int) -> dict[str, str]:
    """Let locust send requests; returns its figures of all of them."""
    users = str(round(rate * SECONDS_BETWEEN))
    task = ["-f", str(Path(__file__).with_name("serve_load.py")), "-H", url, "-t", f"{seconds}s"]
    style = ["--headless", "--only-summary", "--reset-stats", "--csv=load"]
    subprocess.run(
        [sys.executable, "-m", "locust", *task, *style, "-u", users, "-r", str(rate)],
        cwd=folder,
        env=os.environ | {"BODIES": str(folder / "bodies.jsonl")},
        check=False,  # it exits with 1 if a request failed, which the table shows
    )
    with (folder / "load_stats.csv").open(encoding="utf-8") as file:
        return next(row for row in csv.DictReader(file) if row["Name"] == "Aggregated")


def sample_memory(pid: int, stop: threading.Event, samples: list[float]) -> None:
    """Append the megabytes that a process holds, file pages apart, every second."""
    while not stop.wait(1):
        samples.append(anonymous_mb(pid))


def anonymous_mb(pid: int) -> float:
    """What a process holds in memory that is not a page of a file."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def scheduled_ms(pid: int) -> tuple[float, float]:
    """How long the threads of a process have run, and how long they were ready to run and waited for a core."""
    lines = [path.read_text(encoding="ascii").split() for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    ran, waited = (sum(int(line[column]) for line in lines) / 1e6 for column in (0, 1))
    return ran, waited


def main() -> None:
    """Fill a ledger, serve it, and print how long checks take under load."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stories", type=int, default=1_000_000)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--daily", type=int, default=0)
    options = parser.parse_args()
    with TemporaryDirectory() as name, redis_server(Path(name)) as redis_url:
        folder = Path(name)
        neardup = Neardup(folder, dict(os.environ), is_forked=False)
        made = fill(neardup.ledger, folder / "pages", options.stories)
        write_bodies(folder / "bodies.jsonl", made, round(options.rate * options.seconds))
        write_day(folder, options.daily)
        with object_server(folder / "pages", "stories", STORE_SECONDS) as endpoint:
            settings = SERVED.format(manifest=MANIFEST, bucket="stories", endpoint=endpoint)
            neardup.configure(
                settings + COMMON.format(index=redis_url).replace('body = "article .story, div.post-body"', "")
            )
            keys = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "NEARDUP_INDEX__LAYOUT": "compact"}
            neardup.env.update(keys)
            done = neardup("reindex")
            assert done.code == 0, done.err
            listen = f"127.0.0.1:{free_port()}"
            with serving(neardup, listen) as (process, systemd, _):
                systemd.wait_for("STATUS=serving")
                stop, novels, runs = threading.Event(), list[float](), list[dict[str, float]]()
                daily = threading.Thread(target=run_daily, args=(neardup, runs))
                author = threading.Thread(target=check_novels, args=(f"http://{listen}", stop, novels))
                memory = [anonymous_mb(process.pid)]
                sampler = threading.Thread(target=sample_memory, args=(process.pid, stop, memory))
                author.start()
                sampler.start()
                if options.daily:
                    daily.start()
                before = scheduled_ms(process.pid)
                figures = load(f"http://{listen}", folder, options.rate, options.seconds)
                ran, waited = np.subtract(scheduled_ms(process.pid), before) / int(figures["Request Count"])
                stop.set()
                author.join()
                sampler.join()
                if options.daily:
                    daily.join()
    table = table_of(
        "requests",
        "failed",
        "a second",
        "p50 ms",
        "p99 ms",
        "slowest ms",
        "CPU, wait for a core: ms a check",
        "novel s",
        "memory MB at 0, 25, 50, 75, 100 %",
        "daily run: stories, s",
    )
    table.add_row(
        figures["Request Count"],
        figures["Failure Count"],
        f"{float(figures['Requests/s']):.1f}",
        figures["50%"],
        figures["99%"],
        figures["100%"],
        f"{ran:.1f}, {waited:.1f}",
        f"{statistics.median(novels):.2f}, slowest {max(novels):.2f}" if novels else "none",
        " ".join(f"{memory[round(share * (len(memory) - 1))]:.0f}" for share in MOMENTS),
        " ".join(f"{run['fingerprinted']:,}, {run['seconds']:.0f}" for run in runs) or "none",
    )
    out.print(table)


if __name__ == "__main__":
    main()
