"""Measures recall: copies the user's own stories by every edit, and runs the real pipeline on the copies.

The figures are one object, which `--json` prints; the tables show most of it.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from neardup.config import Config
from neardup.core.intervals import estimate_share
from neardup.core.languages import SHIPPED
from neardup.core.verify.tiers import list_kinds
from neardup.insights.evaluate import precision
from neardup.insights.evaluate.corpus import COPIES, Copy, Corpus, Original, plant, sample, write_pages
from neardup.insights.evaluate.disguises import DISGUISES
from neardup.insights.evaluate.measure import FALSE_BELOW_WORDS, RUN, Measured, measure
from neardup.insights.evaluate.precision import measure_precision_on_record
from neardup.insights.evaluate.tables import ALL, SHOWN_PAIRS, Facts, Table, format_decimal, format_interval
from neardup.insights.evaluate.truth import FALSE_BELOW
from neardup.pipeline.progress import Watch
from neardup.records import Kind, format_count

THRESHOLDS = [n / 100 for n in range(30, 91, 5)]
MILLION = 1_000_000
SCORES = ("jaccard", "containment")


def compute_facts(measured: Sequence[Measured]) -> Facts:
    """All figures of some corpora: rows by language, then a row for all languages together."""
    return {
        "stories": {
            language: {
                "originals": corpora[0].originals,
                "copies": sum(counts.total() for corpus in corpora for counts in corpus.flagged_as.values()),
            }
            for language, corpora in _group_by_language(measured).items()
        },
        "recall": list(_compute_recall(measured)),
        "false_flags": list(_find_false_flags(measured)),
        "thresholds": list(_compute_thresholds(measured)),
        "left_out_of_thresholds": sum(corpus.scored.left_out for corpus in measured),
        "false_pairs": sorted(
            ({"language": corpus.language, **asdict(flag)} for corpus in measured for flag in corpus.false_flags),
            key=lambda pair: (max(pair["jaccard"], pair["containment"]), pair["a"], pair["b"]),
        ),
    }


def _group_by_language(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    out: dict[str, list[Measured]] = {}
    for corpus in measured:
        out.setdefault(corpus.language, []).append(corpus)
    return out


def _add_all(measured: Sequence[Measured]) -> Iterator[tuple[str, Sequence[Measured]]]:
    yield from _group_by_language(measured).items()
    yield ALL, measured


def _compute_recall(measured: Sequence[Measured]) -> Iterator[Facts]:
    for language, corpora in _add_all(measured):
        for copy in COPIES:
            flagged = sum((corpus.flagged_as.get(copy.name, Counter()) for corpus in corpora), Counter[Kind | None]())
            if n := flagged.total():
                yield {
                    "language": language,
                    "edit": copy.name,
                    "n": n,
                    **{kind: asdict(estimate_share(flagged[kind], n)) for kind in list_kinds()},
                    ALL: asdict(estimate_share(n - flagged[None], n)),
                }


def _find_false_flags(measured: Sequence[Measured]) -> Iterator[Facts]:
    for language, corpora in _add_all(measured):
        pairs = sum(corpus.cross_pairs for corpus in corpora)
        false = estimate_share(sum(len(corpus.false_flags) for corpus in corpora), pairs)
        yield {
            "language": language,
            "pairs": pairs,
            "flagged": sum(corpus.cross_flags for corpus in corpora),
            "false": false.found,
            "per_million": MILLION * (false.share or 0),
            "low": MILLION * false.low,
            "high": MILLION * false.high,
        }


def _compute_thresholds(measured: Sequence[Measured]) -> Iterator[Facts]:
    """Recall and precision if a threshold on one score alone decided which pairs on record are flagged."""
    copies = sum(corpus.scored.copies for corpus in measured)
    planted, unrelated = (
        np.array([pair for corpus in measured for pair in getattr(corpus.scored, name)], np.float64).reshape(
            -1, len(SCORES)
        )
        for name in ("planted", "unrelated")
    )
    for threshold in THRESHOLDS:
        right, wrong = (planted >= threshold).sum(axis=0).tolist(), (unrelated >= threshold).sum(axis=0).tolist()
        yield {
            "threshold": threshold,
            **{
                score: {
                    "recall": asdict(estimate_share(right[n], copies)),
                    "precision": asdict(estimate_share(right[n], right[n] + wrong[n])),
                }
                for n, score in enumerate(SCORES)
            },
        }


# The evaluation

# In one corpus, most of the work would be to verify copies of a story against each other.  Therefore the ways of
# copying are distributed over several corpora, each with all the originals.
CORPORA = 4
# To start a run takes seconds.  Therefore one run has the originals of as many languages as make this many, and a
# sample of few originals is one corpus.
ORIGINALS, FEW = 300, 5


class Progress(Struct, frozen=True):
    """How progress is shown: of a listing by its number of stories, and of a run."""

    show_count: Callable[[str], AbstractContextManager[Callable[[int], None]]]
    show_progress: Callable[[str], AbstractContextManager[Watch]]


async def evaluate_copies(config: Config, stories: int, min_words: int, seed: int, progress: Progress) -> Facts:
    """Copy that many stories of each language, and measure how many of the copies are found.

    Raises Fatal if there is nothing to copy, and what listing and running raise.
    """
    precision = measure_precision_on_record(config.ledger.path)
    with progress.show_count("listing") as show_listed:
        sampled = await sample(config, stories, min_words, seed, show_listed)
    measured = []
    for group in _divide(list(sampled.values())):
        languages = ", ".join(originals[0].language for originals in group)
        corpora_each = CORPORA if sum(map(len, group)) > FEW else 1
        for n in range(corpora_each):
            copies = COPIES[n::corpora_each]
            with (
                progress.show_progress(f"{languages} {n + 1}/{corpora_each}") as watch,
                TemporaryDirectory(prefix="neardup-evaluate-") as name,
            ):
                corpora = await asyncio.to_thread(_plant, group, copies, seed, Path(name))
                measured += await measure(config, corpora, Path(name), watch)
    return compute_facts(measured) | {"verdicts": precision}


def _divide(samples: Sequence[Sequence[Original]]) -> Iterator[list[Sequence[Original]]]:
    """Divide the samples of the languages into groups of at least ORIGINALS stories, except the last."""
    group: list[Sequence[Original]] = []
    for originals in samples:
        group.append(originals)
        if sum(map(len, group)) >= ORIGINALS:
            yield group
            group = []
    if group:
        yield group


def _plant(group: Iterable[Sequence[Original]], copies: Sequence[Copy], seed: int, folder: Path) -> list[Corpus]:
    """Write a corpus of each language into `folder`."""
    corpora: list[Corpus] = []
    for originals in group:
        corpus, texts = plant(originals, copies, seed, first=corpora[-1].ids.stop if corpora else 0)
        write_pages(corpus, texts, folder)
        corpora.append(corpus)
    return corpora


# Its tables

CODES = SHIPPED.codes
BARS = "▁▂▃▄▅▆▇█"


def make_copies_tables(facts: Facts) -> list[Table]:
    """The tables that are printed; `--json` has every figure, also the recall by kind of each language."""
    together = [row for row in facts["recall"] if row["language"] == ALL]
    return [
        _make_language_table(facts, together),
        _make_strength_table(together),
        _make_kind_table(together),
        Table(
            "False flags",
            "Pairs of different origin that are flagged although they have little in common, and their share of all "
            f"pairs of different origin. Little means, computed separately: fewer than {FALSE_BELOW_WORDS} words in "
            f"common runs of {RUN} words or more, and Jaccard similarity and containment of the word pairs below "
            f"{FALSE_BELOW}.",
            ("language", "pairs compared", "flagged", "false", "per million", "95 % interval"),
            [
                (
                    row["language"],
                    f"{row['pairs']:,}",
                    f"{row['flagged']:,}",
                    f"{row['false']:,}",
                    f"{row['per_million']:.2f}",
                    f"{row['low']:.2f} - {row['high']:.2f}",
                )
                for row in facts["false_flags"]
            ],
        ),
        _make_thresholds_table(facts),
        *([_make_false_pairs_table(facts["false_pairs"])] if facts["false_pairs"] else []),
        *precision.make_precision_tables(facts["verdicts"]),
    ]


def _make_language_table(facts: Facts, together: Iterable[Facts]) -> Table:
    share = {(row["edit"], row["language"]): row[ALL]["share"] for row in facts["recall"]}
    languages = list(facts["stories"])
    return Table(
        "Recall, all kinds together",
        "The share of copies that were flagged with their originals, as any kind. A run stands in another story that "
        "stays whole; a chapter is an original, flagged with a longer work of several.",
        ("copy", *(CODES.get(language, language) for language in languages), ALL, "95 % interval"),
        [
            (
                row["edit"],
                *(format_decimal(share.get((row["edit"], language))) for language in languages),
                format_decimal(row[ALL]["share"]),
                format_interval(row[ALL]),
            )
            for row in together
        ],
    )


def _make_strength_table(rows: Iterable[Facts]) -> Table:
    """The curves of the disguises, each with a bar a strength."""
    recall = {row["edit"]: row[ALL]["share"] for row in rows}
    return Table(
        "Recall by strength of a disguise, all languages",
        "The strength is the share of the words that are changed, or of the letters that are misread.",
        ("disguise", "", "strength: recall"),
        [
            (
                disguise.name,
                "".join(BARS[round(share * (len(BARS) - 1))] for _, share in curve),
                "  ".join(f"{strength:.0%}: {format_decimal(share)}" for strength, share in curve),
            )
            for disguise in DISGUISES
            if (curve := [(n, recall[name]) for n in disguise.strengths if (name := disguise.edit_name(n)) in recall])
        ],
    )


def _make_kind_table(rows: Iterable[Facts]) -> Table:
    return Table(
        "Recall by kind, all languages",
        "",
        ("copy", "n", *list_kinds(), ALL, "95 % interval"),
        [
            (
                row["edit"],
                str(row["n"]),
                *(format_decimal(row[kind]["share"]) for kind in (*list_kinds(), ALL)),
                format_interval(row[ALL]),
            )
            for row in rows
        ],
    )


def _make_thresholds_table(facts: Facts) -> Table:
    left_out = format_count(facts["left_out_of_thresholds"], "pair that overlaps", "pairs that overlap")
    return Table(
        "Thresholds",
        "Recall and precision if a threshold on one score alone decided which pairs on record are flagged. Precision "
        f"leaves out {left_out} for other reasons than the edits. Runs and chapters are left out of both.",
        ("threshold", *(f"{what} by {score}" for score in SCORES for what in ("recall", "precision"))),
        [
            (
                f"{row['threshold']:.2f}",
                *(format_decimal(row[score][what]["share"]) for score in SCORES for what in ("recall", "precision")),
            )
            for row in facts["thresholds"]
        ],
    )


def _make_false_pairs_table(pairs: Sequence[Facts]) -> Table:
    def story(pair: Facts, side: str) -> str:
        return f"{pair[side]}, {pair[f'edit_{side}']}" if pair[f"edit_{side}"] else str(pair[side])

    return Table(
        "False flags, those with the least in common first",
        "",
        ("language", "kind", "story", "match", "Jaccard", "containment"),
        [
            (
                pair["language"],
                pair["kind"],
                story(pair, "a"),
                story(pair, "b"),
                format_decimal(pair["jaccard"]),
                format_decimal(pair["containment"]),
            )
            for pair in pairs[:SHOWN_PAIRS]
        ],
    )
