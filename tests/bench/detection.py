"""`make bench-detection`: compares recall, precision, time and memory with datasketch, rensa and simhash.

Each detector gets the same texts of a corpus with known pairs, one after the other, each in a process of its own.
Figures are printed, never asserted.
"""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console

from tests.bench import corpus, detector, peers, report
from tests.bench.corpus import MAY, MUST, Pair, Truth, read_documents, read_truth, scores, shingle_set
from tests.bench.detector import Detected
from tests.support.resource_meter import machine, run_module

ROUNDS = 3
STAGES = ("sketch", "index", "verify")
MICRO = 1e6
WIDTH = 140
CAPTION = f"""\
recall     share found of the pairs whose exact Jaccard similarity or containment of word pairs is at least {MUST};
           "jaccard" and "contained": of the pairs with that Jaccard similarity, and of those by containment alone
precision  share of the reported pairs with a score of at least {MAY}; pairs that pairs.jsonl does not list are false
compared   the same, but pairs that pairs.jsonl does not list are compared exactly
sketch     computing words and sketches of all texts, in memory
index      looking up and inserting each story; neardup's index is on disk, and the time includes ledger commits
verify     comparing the texts of nominated pairs exactly; "neardup, nominated" omits this stage
scan       a whole `neardup scan` of a JSONL file of the texts, with the start of its processes
backfill   a whole neardup backfill, which also lists, fetches and parses the pages; bytes are those of ledger and index
CPU        of the process, all its threads and children; a backfill includes the start of the reader processes
bytes      neardup: a SQLite file with the index alone; others: tracemalloc's figure for a filled index without sketches
peak       memory of the largest process; with the texts, which all rows but a backfill hold
split()    words are text.lower().split(); with "our words" they are neardup's tokens
bulk       MinHash.bulk, the fast method in datasketch's documentation; otherwise one update() per shingle"""

Runs = dict[str, list[Detected]]


def measure(folder: Path) -> Runs:
    """Run each detector ROUNDS times, taking turns; returns the results by row of the table."""
    commands = [
        (detector.__name__, "texts"),
        (detector.__name__, "scan"),
        (detector.__name__, "pages"),
        *((peers.__name__, name) for name in peers.PEERS),
    ]
    runs: Runs = {}
    for turn in range(ROUNDS):
        for module, name in commands:
            click.echo(f"round {turn + 1} of {ROUNDS}: {module.rpartition('.')[2]}, {name}", err=True)
            for row, result in run_module(module, name, folder).items():
                runs.setdefault(row, []).append(Detected(**result))
    return runs


def show(runs: Mapping[str, Sequence[Detected]], truth: Truth, compared: frozenset[Pair]) -> None:
    """Print medians of the costs; the pairs are the same in each round."""
    names = ("recall", "jaccard", "contained", "precision", "compared", "pairs")
    costs = (*(f"{stage}\nCPU us" for stage in STAGES), "all CPU\nus", "wall\nus", "bytes\nper story", "peak\nMiB")
    table = report.table_of("detector (us per story)", *names, *costs)
    for name, rounds in runs.items():
        pairs = _pairs(rounds[-1])
        documents = rounds[-1].documents
        table.add_row(
            name,
            *(_share(pairs & expected, expected) for expected in (truth.must, truth.jaccard, truth.containment)),
            *(_share(pairs & correct, pairs) for correct in (truth.correct, truth.correct | compared)),
            f"{len(pairs):,}",
            *(_median([run.cpu.get(stage) for run in rounds], documents) for stage in STAGES),
            _median([sum(run.cpu.values()) for run in rounds], documents),
            _median([run.seconds for run in rounds], documents),
            "-" if (size := rounds[-1].index_bytes) is None else f"{size / documents:,.0f}",
            f"{rounds[-1].peak_mb:,.0f}",
        )
    Console(highlight=False, width=WIDTH).print(table)


def compare(runs: Mapping[str, Sequence[Detected]], truth: Truth, folder: Path) -> frozenset[Pair]:
    """The reported pairs that pairs.jsonl does not list, but whose exact scores make them correct."""
    shingles = {d.id: shingle_set(d) for d in read_documents(folder / "manifest.csv", folder / "html")}
    unlisted = frozenset().union(*(_pairs(rounds[-1]) for rounds in runs.values())) - truth.correct
    return frozenset((a, b) for a, b in unlisted if max(scores(shingles[a], shingles[b])) >= MAY)


def _pairs(found: Detected) -> frozenset[Pair]:
    return frozenset((a, b) for a, b in found.pairs)  # in JSON, a pair is a list


def _share(part: frozenset[Pair], whole: frozenset[Pair]) -> str:
    return f"{len(part) / len(whole):.4f}" if whole else "-"


def _median(seconds: Sequence[float | None], documents: int) -> str:
    """The median in microseconds per story; "-" for a stage that the detector does not have."""
    known = [value for value in seconds if value is not None]
    return f"{statistics.median(known) * MICRO / documents:,.0f}" if known else "-"


@click.command()
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path | None) -> None:
    """Measure neardup and others on the corpus in FOLDER; without it, on edited copies of the samples."""
    with TemporaryDirectory(prefix="neardup-bench-") as name:
        if folder is None:
            description = "the sample stories, which are few and short, and edited copies of them"
            folder = Path(name) / "corpus"
            corpus.write_corpus(folder)
        else:
            description = str(folder)
            corpus.check(folder)
        runs = measure(folder)
        truth = read_truth(folder)
        compared = compare(runs, truth, folder)
    documents = runs[detector.VERIFIED][-1].documents
    click.echo(f"{machine()}; medians of {ROUNDS} rounds in turn")
    click.echo(
        f"{documents:,} documents ({description}); {len(truth.must):,} pairs must be found: "
        f"{len(truth.jaccard):,} by Jaccard similarity, {len(truth.containment):,} by containment alone\n"
    )
    show(runs, truth, compared)
    click.echo(f"\n{CAPTION}")


if __name__ == "__main__":
    main()
