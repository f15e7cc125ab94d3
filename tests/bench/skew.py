"""`python -m tests.bench.skew CORPUS`: how unevenly unrelated stories fill the bands, and how the synthetic ones do.

Language by language: the corpus's stories of which no two are listed as a pair, and as many that are drawn.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.fingerprint.minhash import agreeing, signature_rows
from neardup.core.text.normalize import tokens
from neardup.core.verify.scores import hamming
from neardup.index.spread import BAND_VALUES, two_shared
from neardup.insights.plan.profile import collisions
from neardup.records import Language

from tests.bench import report
from tests.bench.corpus import Pair, check, read_documents
from tests.support import synthetic
from tests.support.synthetic import Stories

MIN_WORDS = 100  # of less the pairs are not known
SEED = 2


def unrelated(corpus: Path, without: frozenset[int]) -> dict[Language, Stories]:
    """The stories of a corpus, leaving out the later one of each listed pair."""
    related = listed_pairs(corpus)
    made: dict[Language, dict[int, tuple[bytes, bytes]]] = defaultdict(dict)
    for document in read_documents(corpus / "manifest.csv", corpus / "html"):
        words = tokens(document.text)
        mine = made[document.language]
        if len(words) < MIN_WORDS or document.id in without or related[document.id] & mine.keys():
            continue
        one = fingerprint(words)
        if one.signature:
            mine[document.id] = one.simhash, one.signature
    return {
        language: Stories(
            np.frombuffer(b"".join(simhash for simhash, _ in mine.values()), np.uint8).reshape(-1, 16),
            signature_rows([signature for _, signature in mine.values()]),
        )
        for language, mine in made.items()
    }


def listed_pairs(corpus: Path) -> dict[int, set[int]]:
    """Whom each story is listed with, whatever they have in common."""
    related: dict[int, set[int]] = defaultdict(set)
    with (corpus / "pairs.jsonl").open(encoding="utf-8") as file:
        pairs: Iterable[Pair] = [(row["a"], row["b"]) for row in map(json.loads, file)]
    for a, b in pairs:
        related[a].add(b)
        related[b].add(a)
    return related


def measured(stories: Stories) -> list[str]:
    """The figures of a row, in the order of the table's columns."""
    bands, hash_bands = (np.ascontiguousarray(rows).view(np.uint16) for rows in (stories.signatures, stories.simhashes))
    halves = np.ascontiguousarray(stories.simhashes).view(np.uint64)
    shared, rows, bits = np.zeros(33, np.int64), np.zeros(65, np.int64), np.zeros(129, np.int64)
    for n in range(len(stories) - 1):
        shared += np.bincount(np.count_nonzero(bands[n + 1 :] == bands[n], axis=1), minlength=33)
        rows += np.bincount(agreeing(stories.signatures[n + 1 :], stories.signatures[n]), minlength=65)
        bits += np.bincount(hamming(halves[n + 1 :], halves[n]), minlength=129)
    sharing = collisions(bands, BAND_VALUES)
    mean = bits @ np.arange(129) / bits.sum()
    spread = np.sqrt(bits @ (np.arange(129) - mean) ** 2 / bits.sum())
    return [
        f"{len(stories):,}",
        f"{BAND_VALUES * sharing.mean():.1f}",
        f"{BAND_VALUES * sharing.max():.0f}",
        *(f"{counts[least:].sum() / counts.sum():.1e}" for counts, least in ((shared, 1), (shared, 2), (rows, 6))),
        f"{two_shared(sharing):.1e}",
        f"{BAND_VALUES * collisions(hash_bands, BAND_VALUES).mean():.1f}",
        f"{mean:.0f} +- {spread:.1f}",
    ]


COLUMNS = (
    "stories",
    "bucket, times uniform",
    "of the worst band",
    "pairs sharing a band",
    "two bands",
    "agreeing in 6 rows",
    "two, if independent",
    "SimHash bucket",
    "bits that differ",
)


@click.command()
@click.option("--without", type=click.File(), help="Ids of stories to leave out, one a line: pages with one footer.")
@click.argument("corpus", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(without: Iterable[str] | None, corpus: Path) -> None:
    """Measure the stories of CORPUS, and as many drawn ones."""
    check(corpus)
    table = report.table_of("", *COLUMNS)
    for language, stories in sorted(unrelated(corpus, frozenset(map(int, without or ()))).items()):
        drawn = synthetic.draw(np.random.default_rng(SEED), synthetic.prose(language), len(stories))
        for kind, some in (("measured", stories), ("drawn", drawn)):
            table.add_row(f"{language}, {kind}", *measured(some))
    report.out.print(table)


if __name__ == "__main__":
    main()
