"""The tables of an evaluation with copies."""

from collections.abc import Iterable, Sequence

from neardup.core.verify.tiers import kinds
from neardup.insights.charts.page import Table
from neardup.insights.evaluate import verdict_tables
from neardup.insights.evaluate.facts import SCORES
from neardup.insights.evaluate.figures import ALL, Facts
from neardup.insights.evaluate.overlap import FALSE_BELOW_WORDS, RUN
from neardup.insights.evaluate.tables import SHOWN_PAIRS, decimal, interval
from neardup.insights.evaluate.truth import FALSE_BELOW
from neardup.languages import SHIPPED

CODES = SHIPPED.codes
LOOKUP = {"met": "found", "nominated": "nominated", "strangers": "unrelated"}  # key of the facts: column
SPREAD = ("mean", "p50", "p99")


def tables(facts: Facts) -> list[Table]:
    """The tables that both the terminal and the page show."""
    together = [row for row in facts["recall"] if row["language"] == ALL]
    return [
        _recall_by_language(facts, together),
        _recall_by_kind("Recall by kind, all languages", together),
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
        Table(
            "Candidates per lookup",
            "Each original is looked up among all originals and some of the copies. Found: stories in the same "
            "buckets. Nominated: stories that are verified. Unrelated: nominated stories that are not its copies.",
            ("language", "lookups", *(f"{column} {s}" for column in LOOKUP.values() for s in SPREAD)),
            [
                (
                    row["language"],
                    f"{row['lookups']:,}",
                    *(f"{row[w][s]:,.1f}".removesuffix(".0") for w in LOOKUP for s in SPREAD),
                )
                for row in facts["candidates"]
            ],
        ),
        Table(
            "Bands x rows",
            "Signatures have 64 rows; a candidate shares that many bands. Precision, recall and F1 of the candidates "
            "against all pairs whose exact Jaccard similarity of the same shingles reaches detection.jaccard.",
            ("shingles", "bands", "rows", "shared", "precision", "recall", "F1", "candidates per lookup"),
            [
                (
                    row["shingles"],
                    *(str(row[name]) for name in ("bands", "rows", "shared")),
                    *(decimal(row[name]) for name in ("precision", "recall", "f1")),
                    "" if row["candidates_per_lookup"] is None else f"{row['candidates_per_lookup']:.1f}",
                )
                for row in facts["bands"]
            ],
        ),
        *verdict_tables.tables(facts["verdicts"]),
    ]


def _recall_by_language(facts: Facts, together: Iterable[Facts]) -> Table:
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
                *(decimal(share.get((row["edit"], language))) for language in languages),
                decimal(row[ALL]["share"]),
                interval(row[ALL]),
            )
            for row in together
        ],
    )


def _recall_by_kind(title: str, rows: Iterable[Facts]) -> Table:
    return Table(
        title,
        "",
        ("copy", "n", *kinds(), ALL, "95 % interval"),
        [
            (row["edit"], str(row["n"]), *(decimal(row[kind]["share"]) for kind in (*kinds(), ALL)), interval(row[ALL]))
            for row in rows
        ],
    )


def details(facts: Facts) -> list[Table]:
    """The tables that only the page shows."""
    thresholds = Table(
        "Thresholds",
        "Recall and precision if a threshold on one score alone decided which pairs on record are flagged. Precision "
        f"leaves out {facts['left_out_of_thresholds']:,} pairs that overlap for other reasons than the edits. Runs and "
        "chapters are left out of both.",
        ("threshold", *(f"{what} by {score}" for score in SCORES for what in ("recall", "precision"))),
        [
            (
                f"{row['threshold']:.2f}",
                *(decimal(row[score][what]["share"]) for score in SCORES for what in ("recall", "precision")),
            )
            for row in facts["thresholds"]
        ],
    )
    return [
        thresholds,
        *(
            _recall_by_kind(f"Recall by kind, {language}", [r for r in facts["recall"] if r["language"] == language])
            for language in facts["stories"]
        ),
        *([_false_pairs(facts["false_pairs"])] if facts["false_pairs"] else []),
    ]


def _false_pairs(pairs: Sequence[Facts]) -> Table:
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
                decimal(pair["jaccard"]),
                decimal(pair["containment"]),
            )
            for pair in pairs[:SHOWN_PAIRS]
        ],
    )
