"""`make bench-detection`: recall, precision, time and memory beside datasketch and simhash.

All contenders are given the same texts of a corpus with known truth, in turn, each in a process of
its own.  Figures are printed, never asserted.
"""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console

from tests.bench import corpus, detector, edited, peers, report
from tests.bench.corpus import MAY, MUST, Pair, Truth, read_documents, read_truth, scores, shingle_set
from tests.bench.detected import Detected
from tests.support.module_process import machine, run_module

ROUNDS = 3
STAGES = ("sketch", "index", "verify")
MICRO = 1e6
WIDTH = 140
CAPTION = f"""\
recall     of the pairs whose exact Jaccard similarity or containment of word pairs is {MUST} or more: all of them,
           those of that Jaccard similarity, and those that are so by containment alone
precision  of the pairs reported, the share not below {MAY} on both; a pair that the truth does not list is false
compared   the same, where a pair that the truth does not list is compared, exactly
sketch     words and sketches of all texts, in memory
index      look up and insert each story; neardup's is on disk, and the commits to its ledger are in it
verify     the texts of the nominated pairs again, exactly; "nominated" is neardup without it
backfill   neardup as it is run: also reads and parses the pages, lists and checks; bytes of ledger and index
CPU        of the process, all its threads and children; the start of neardup's reading processes is in its backfill
bytes      neardup: of a SQLite file of the index alone; others: what tracemalloc counts for a filled index, no sketches
split()    words by text.lower().split(); "our words" are neardup's tokens
bulk       MinHash.bulk, the fast way that datasketch documents; else one update() a shingle, as it is shown"""

Runs = dict[str, list[Detected]]


def measure(folder: Path) -> Runs:
    """The contenders in turn, so many rounds; the results of each row of the table."""
    commands = [
        (detector.__name__, "texts"),
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
    """Medians of the costs; the pairs are the same in each round."""
    names = ("recall", "jaccard", "contained", "precision", "compared", "pairs")
    costs = (*(f"{stage}\nCPU us" for stage in STAGES), "all CPU\nus", "wall\nus", "bytes\na story")
    table = report.table_of("contender, us a story", *names, *costs)
    for name, mine in runs.items():
        pairs = _pairs(mine[-1])
        documents = mine[-1].documents
        table.add_row(
            name,
            *(_share(pairs & wanted, wanted) for wanted in (truth.must, truth.jaccard, truth.containment)),
            *(_share(pairs & right, pairs) for right in (truth.right, truth.right | compared)),
            f"{len(pairs):,}",
            *(_median([run.cpu.get(stage) for run in mine], documents) for stage in STAGES),
            _median([sum(run.cpu.values()) for run in mine], documents),
            _median([run.seconds for run in mine], documents),
            f"{mine[-1].index_bytes / documents:,.0f}",
        )
    Console(highlight=False, width=WIDTH).print(table)


def compare(runs: Mapping[str, Sequence[Detected]], truth: Truth, folder: Path) -> frozenset[Pair]:
    """Of the pairs reported that the truth does not list, those that are right."""
    shingles = {d.id: shingle_set(d) for d in read_documents(folder / "manifest.csv", folder / "html")}
    unlisted = frozenset().union(*(_pairs(mine[-1]) for mine in runs.values())) - truth.right
    return frozenset((a, b) for a, b in unlisted if max(scores(shingles[a], shingles[b])) >= MAY)


def _pairs(found: Detected) -> frozenset[Pair]:
    return frozenset((a, b) for a, b in found.pairs)  # JSON made lists of them


def _share(part: frozenset[Pair], whole: frozenset[Pair]) -> str:
    return f"{len(part) / len(whole):.4f}" if whole else "-"


def _median(seconds: Sequence[float | None], documents: int) -> str:
    """Microseconds a story; nothing for a stage that a contender does not have."""
    known = [value for value in seconds if value is not None]
    return f"{statistics.median(known) * MICRO / documents:,.0f}" if known else "-"


@click.command()
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(folder: Path | None) -> None:
    """Measure neardup, datasketch and simhash on a corpus; on edited copies of the samples without one."""
    with TemporaryDirectory(prefix="neardup-bench-") as name:
        if folder is None:
            told = "the sample stories and generated edited copies of them: short, and few"
            folder = Path(name) / "corpus"
            edited.write_corpus(folder)
        else:
            told = str(folder)
            corpus.check(folder)
        runs = measure(folder)
        truth = read_truth(folder)
        compared = compare(runs, truth, folder)
    documents = runs[detector.VERIFIED][-1].documents
    click.echo(f"{machine()}; medians of {ROUNDS} rounds in turn")
    click.echo(
        f"{documents:,} documents ({told}); {len(truth.must):,} pairs must be found: {len(truth.jaccard):,} by Jaccard "
        f"similarity, {len(truth.containment):,} by containment alone\n"
    )
    show(runs, truth, compared)
    click.echo(f"\n{CAPTION}")


if __name__ == "__main__":
    main()
