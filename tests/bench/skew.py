"""`python -m tests.bench.skew CORPUS`: how unevenly unrelated real stories and synthetic stories fill the buckets.

For each language it compares stories of the corpus, of which no two are listed as a pair, with as many synthetic ones.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np
from neardup.core.fingerprint.compute import fingerprint
from neardup.core.fingerprint.minhash import count_agreeing_rows, stack_signatures
from neardup.core.fingerprint.word_hashes import measure_hamming
from neardup.core.text.normalize import tokenize
from neardup.records import Language

from tests.bench import report
from tests.bench.corpus import Pair, check, read_documents
from tests.support import synthetic
from tests.support.synthetic import BAND_VALUES, Stories, collisions

MIN_WORDS = 100  # the pairs of shorter stories are not known
SEED = 2


def unrelated(corpus: Path, without: frozenset[int]) -> dict[Language, Stories]:
    """The stories of a corpus, leaving out the later one of each listed pair."""
    related = listed_pairs(corpus)
    fingerprints: dict[Language, dict[int, tuple[bytes, bytes]]] = defaultdict(dict)
    for document in read_documents(corpus / "manifest.csv", corpus / "html"):
        words = tokenize(document.text)
        chosen = fingerprints[document.language]
        if len(words) < MIN_WORDS or document.id in without or related[document.id] & chosen.keys():
            continue
        computed = fingerprint(words)
        if computed.signature:
            chosen[document.id] = computed.simhash, computed.signature
    return {
        language: Stories(
            np.frombuffer(b"".join(simhash for simhash, _ in chosen.values()), np.uint8).reshape(-1, 16),
            stack_signatures([signature for _, signature in chosen.values()]),
        )
        for language, chosen in fingerprints.items()
    }


def listed_pairs(corpus: Path) -> dict[int, set[int]]:
    """The ids of the stories that each story is listed with, at any score."""
    related: dict[int, set[int]] = defaultdict(set)
    with (corpus / "pairs.jsonl").open(encoding="utf-8") as file:
        pairs: Iterable[Pair] = [(row["a"], row["b"]) for row in map(json.loads, file)]
    for a, b in pairs:
        related[a].add(b)
        related[b].add(a)
    return related


def measured(stories: Stories) -> list[str]:
    """The figures of a row, in the order of COLUMNS."""
    bands, hash_bands = (np.ascontiguousarray(rows).view(np.uint16) for rows in (stories.signatures, stories.simhashes))
    halves = np.ascontiguousarray(stories.simhashes).view(np.uint64)
    shared, rows, bits = np.zeros(33, np.int64), np.zeros(65, np.int64), np.zeros(129, np.int64)
    for n in range(len(stories) - 1):
        shared += np.bincount(np.count_nonzero(bands[n + 1 :] == bands[n], axis=1), minlength=33)
        rows += np.bincount(count_agreeing_rows(stories.signatures[n + 1 :], stories.signatures[n]), minlength=65)
        bits += np.bincount(measure_hamming(halves[n + 1 :], halves[n]), minlength=129)
    sharing = collisions(bands, BAND_VALUES)
    mean = bits @ np.arange(129) / bits.sum()
    spread = np.sqrt(bits @ (np.arange(129) - mean) ** 2 / bits.sum())
    return [
        f"{len(stories):,}",
        f"{BAND_VALUES * sharing.mean():.1f}",
        f"{BAND_VALUES * sharing.max():.0f}",
        *(f"{counts[least:].sum() / counts.sum():.1e}" for counts, least in ((shared, 1), (shared, 2), (rows, 6))),
        f"{BAND_VALUES * collisions(hash_bands, BAND_VALUES).mean():.1f}",
        f"{mean:.0f} +- {spread:.1f}",
    ]


COLUMNS = (
    "stories",
    "signature bucket,\ntimes uniform",
    "in the\nworst band",
    "pairs that\nshare a band",
    "two\nbands",
    "agree in\n6 rows",
    "SimHash bucket,\ntimes uniform",
    "Hamming\ndistance",
)


@click.command()
@click.option(
    "--without",
    type=click.File(),
    help="Ids of stories to leave out, one per line, such as pages with a common footer.",
)
@click.argument("corpus", type=click.Path(exists=True, file_okay=False, path_type=Path))
def main(without: Iterable[str] | None, corpus: Path) -> None:
    """Measure the unrelated stories of CORPUS, and as many synthetic ones."""
    check(corpus)
    table = report.table_of("", *COLUMNS)
    for language, stories in sorted(unrelated(corpus, frozenset(map(int, without or ()))).items()):
        drawn = synthetic.draw(np.random.default_rng(SEED), synthetic.prose(language), len(stories))
        for kind, compared in (("real", stories), ("synthetic", drawn)):
            table.add_row(f"{language}, {kind}", *measured(compared))
    report.out.print(table)


if __name__ == "__main__":
    main()
