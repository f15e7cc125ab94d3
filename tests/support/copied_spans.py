"""Flags with copied spans."""

import sqlite3

import numpy as np
from neardup.core.verify.tiers import PARTIAL
from neardup.ledger import candidates, transaction, verification
from neardup.pipeline.verifier import BEFORE_ALL
from neardup.records import NO_SPANS, Assessment, Kind, Signals, Spans

ALIKE = Signals(40, False, 0.3, 0.6, 0.6, 20)


def spans_of(*spans: tuple[int, int]) -> Spans:
    return np.array(spans, np.int32).reshape(-1, 2)


def flag_spans(  # noqa: PLR0917 - a flag in one line
    db: sqlite3.Connection, a: int, b: int, kind: Kind = PARTIAL, spans_a: Spans = NO_SPANS, spans_b: Spans = NO_SPANS
) -> None:
    """Nominate two stories that the ledger has, a < b, and flag them with these copied words."""
    with transaction(db):
        candidates.put(db, a, b)
    assessment = Assessment(kind, ALIKE, spans_a, spans_b)
    verification.record(db, [(pair, assessment) for pair in candidates.list_pending(db, BEFORE_ALL, 99)], "v")
