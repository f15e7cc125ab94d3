"""The figures of an evaluation as one object, which `--json` prints and the tables and the page show."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from neardup.core.intervals import share
from neardup.core.verify.tiers import kinds
from neardup.insights.evaluate.bands import BandingCounts
from neardup.insights.evaluate.figures import ALL, Facts
from neardup.insights.evaluate.measure import Measured
from neardup.insights.evaluate.plant import COPIES
from neardup.pairs import Kind

THRESHOLDS = [n / 100 for n in range(30, 91, 5)]
MILLION = 1_000_000
SCORES = ("jaccard", "containment")


@dataclass(frozen=True, slots=True)
class Banding:
    """The parameters of one row of the table of banding."""

    shingles: str
    bands: int
    rows: int
    shared: int


def facts(measured: Sequence[Measured], bands: Mapping[Banding, BandingCounts]) -> Facts:
    """All figures of some corpora: rows by language, then a row for all languages together."""
    return {
        "stories": {
            language: {
                "originals": some[0].originals,
                "copies": sum(counts.total() for one in some for counts in one.flagged_as.values()),
            }
            for language, some in _by_language(measured).items()
        },
        "recall": list(_recall(measured)),
        "false_flags": list(_false_flags(measured)),
        "candidates": list(_candidates(measured)),
        "thresholds": list(_thresholds(measured)),
        "left_out_of_thresholds": sum(one.scored.left_out for one in measured),
        "bands": [_banding(banding, counts) for banding, counts in bands.items()],
        "buckets": {
            "signature": _sizes(one.signature_buckets for one in measured),
            "simhash": _sizes(one.simhash_buckets for one in measured),
        },
        "false_pairs": sorted(
            ({"language": one.language, **asdict(flag)} for one in measured for flag in one.false_flags),
            key=lambda pair: (max(pair["jaccard"], pair["containment"]), pair["a"], pair["b"]),
        ),
    }


def _by_language(measured: Sequence[Measured]) -> dict[str, list[Measured]]:
    out: dict[str, list[Measured]] = {}
    for one in measured:
        out.setdefault(one.language, []).append(one)
    return out


def _with_all(measured: Sequence[Measured]) -> Iterator[tuple[str, Sequence[Measured]]]:
    yield from _by_language(measured).items()
    yield ALL, measured


def _recall(measured: Sequence[Measured]) -> Iterator[Facts]:
    for language, some in _with_all(measured):
        for copy in COPIES:
            flagged = sum((one.flagged_as.get(copy.name, Counter()) for one in some), Counter[Kind | None]())
            if n := flagged.total():
                yield {
                    "language": language,
                    "edit": copy.name,
                    "n": n,
                    **{kind: asdict(share(flagged[kind], n)) for kind in kinds()},
                    ALL: asdict(share(n - flagged[None], n)),
                }


def _false_flags(measured: Sequence[Measured]) -> Iterator[Facts]:
    for language, some in _with_all(measured):
        pairs = sum(one.cross_pairs for one in some)
        false = share(sum(len(one.false_flags) for one in some), pairs)
        yield {
            "language": language,
            "pairs": pairs,
            "flagged": sum(one.cross_flags for one in some),
            "false": false.found,
            "per_million": MILLION * (false.share or 0),
            "low": MILLION * false.low,
            "high": MILLION * false.high,
        }


def _candidates(measured: Sequence[Measured]) -> Iterator[Facts]:
    for language, some in _with_all(measured):
        lookups = [lookup for one in some for lookup in one.lookups]
        yield {
            "language": language,
            "lookups": len(lookups),
            "met": _spread([lookup.found for lookup in lookups]),
            "nominated": _spread([lookup.nominated for lookup in lookups]),
            "strangers": _spread([lookup.unrelated for lookup in lookups]),
        }


def _spread(counts: Sequence[int]) -> dict[str, float]:
    """Mean, median and 99th percentile."""
    p50, p99 = np.percentile(counts, (50, 99), method="inverted_cdf").tolist()
    return {"mean": float(np.mean(counts)), "p50": p50, "p99": p99}


def _thresholds(measured: Sequence[Measured]) -> Iterator[Facts]:
    """Recall and precision if a threshold on one score alone decided which pairs on record are flagged."""
    copies = sum(one.scored.copies for one in measured)
    planted, unrelated = (
        np.array([pair for one in measured for pair in getattr(one.scored, name)], np.float64).reshape(-1, len(SCORES))
        for name in ("planted", "unrelated")
    )
    for threshold in THRESHOLDS:
        right, wrong = (planted >= threshold).sum(axis=0).tolist(), (unrelated >= threshold).sum(axis=0).tolist()
        yield {
            "threshold": threshold,
            **{
                score: {
                    "recall": asdict(share(right[n], copies)),
                    "precision": asdict(share(right[n], right[n] + wrong[n])),
                }
                for n, score in enumerate(SCORES)
            },
        }


def _banding(banding: Banding, counts: BandingCounts) -> Facts:
    return {
        **asdict(banding),
        "stories": counts.stories,
        "precision": counts.precision,
        "recall": counts.recall,
        "f1": counts.f1,
        "candidates_per_lookup": counts.candidates_per_lookup,
    }


def _sizes(buckets: Iterable[Sequence[int]]) -> dict[int, int]:
    """Count the buckets by their number of members."""
    return dict(sorted(Counter(size for sizes in buckets for size in sizes).items()))
