"""Signals as columns of the tables `flags` and `candidates`."""

import json
from collections.abc import Sequence
from typing import Any

from neardup.core.verify.tiers import EXACT
from neardup.records import Kind, Signals

SIGNAL_COLUMNS = (
    "hamming",
    "jaccard",
    "containment_a",
    "containment_b",
    "longest_run_words",
    "estimated",
    "signals",  # the extra ones as a JSON object, NULL where there are none
)


def columns_of(signals: Signals) -> dict[str, object]:
    """The values of SIGNAL_COLUMNS, in their order."""
    values = (
        signals.hamming,
        signals.jaccard,
        signals.containment_a,
        signals.containment_b,
        signals.longest_run_words,
        signals.estimated,
        json.dumps(dict(signals.extra)) if signals.extra else None,
    )
    return dict(zip(SIGNAL_COLUMNS, values, strict=True))


def signals_of(kind: Kind | None, columns: Sequence[Any]) -> Signals:
    """The values of SIGNAL_COLUMNS of a pair of this kind -> its signals."""
    hamming, jaccard, containment_a, containment_b, run, estimated, extra = columns
    return Signals(
        hamming,
        kind == EXACT,
        jaccard,
        containment_a,
        containment_b,
        run,
        bool(estimated),
        json.loads(extra) if extra else {},
    )
