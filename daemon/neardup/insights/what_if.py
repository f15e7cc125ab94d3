"""What-if analysis: what other thresholds would flag, by the signals of the pairs on record, without reading pages."""

import sqlite3
from collections import Counter
from typing import Any

from neardup.config import Detection
from neardup.core.verify.tiers import SERIAL, find_kind, list_kinds
from neardup.ledger import languages, verification
from neardup.records import Kind, Language, Verdict

Tally = Counter[tuple[Language, Kind]]
COLUMNS = ("flags", "replayed", "plus", "minus")  # on record; by the other thresholds; what these add, what they drop


def compare_thresholds(db: sqlite3.Connection, detection: Detection, since: int, until: int) -> dict[str, Any]:
    """Compare the flags on record with those that `detection` would make of the same pairs.

    The pairs are those verified in [since, until), in milliseconds: flags, open or decided by a moderator, and near
    misses.  A pair that was never nominated, or whose scores were too low to be kept, cannot become a flag.  Serials
    stay aligned as they are, so their chapters are flags by any thresholds.
    `verdicts` counts the decided pairs: how many copies would be `lost`, and how many pairs that are not similar
    would be `spared`.
    """
    tallies = {column: Tally() for column in COLUMNS}
    decided, unflagged = Counter[Verdict](), Counter[Verdict]()
    pairs = 0
    for pair in verification.list_verified_pairs(db, since, until):
        pairs += 1
        of_serial = SERIAL if pair.is_aligned or pair.kind == SERIAL else None
        kind = find_kind(pair.signals, detection.of(pair.language)) or of_serial
        if pair.verdict is not None:
            decided[pair.verdict] += 1
            unflagged[pair.verdict] += kind is None
        kinds = {"flags": pair.kind, "replayed": kind}
        if kind != pair.kind:
            kinds |= {"plus": kind, "minus": pair.kind}
        for column, counted in kinds.items():
            if counted is not None:
                tallies[column][pair.language, counted] += 1
    flags, replayed = tallies["flags"], tallies["replayed"]
    return {
        "pairs": pairs,
        "flags": flags.total(),
        "replayed": replayed.total(),
        "verdicts": {
            "real": decided.total() - decided[Verdict.NOT_SIMILAR],
            "lost": {verdict: n for verdict, n in unflagged.items() if n and verdict is not Verdict.NOT_SIMILAR},
            "not_similar": decided[Verdict.NOT_SIMILAR],
            "spared": unflagged[Verdict.NOT_SIMILAR],
        },
        "by_language": {
            language: {
                kind: {column: tally[language, kind] for column, tally in tallies.items()}
                for kind in list_kinds()
                if flags[language, kind] or replayed[language, kind]
            }
            for language in languages.map_numbers(db)
            if any(flags[language, kind] or replayed[language, kind] for kind in list_kinds())
        },
    }
