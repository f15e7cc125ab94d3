"""What would other thresholds have flagged?  Judges the pairs on record anew by their scores; reads no page."""

import sqlite3
from collections import Counter
from typing import Any

from neardup.config import Detection
from neardup.core.verify.tiers import kind_of, kinds
from neardup.ledger import candidates, languages
from neardup.records import Kind, Language, Verdict

Tally = Counter[tuple[Language, Kind]]


def replay(db: sqlite3.Connection, detection: Detection, since: int, until: int) -> dict[str, Any]:
    """The flags that `detection` makes of the pairs judged in [since, until) (milliseconds), beside those on record.

    The pairs on record are the flags, open or judged by a moderator, and the near misses; what was never
    nominated, or shares too little to be kept, no threshold brings back.  `verdicts` tells what it would have cost:
    of those judged, how many real copies would be `lost`, and how many that are not similar `spared`.
    """
    now, then, plus, minus = Tally(), Tally(), Tally(), Tally()
    judged, unflagged = Counter[Verdict](), Counter[Verdict]()
    pairs = 0
    for pair in candidates.verified(db, since, until):
        pairs += 1
        kind = kind_of(pair.signals, detection.of(pair.language))
        if pair.verdict is not None:
            judged[pair.verdict] += 1
            unflagged[pair.verdict] += kind is None
        for tally, one in ((now, pair.kind), (then, kind)):
            if one is not None:
                tally[pair.language, one] += 1
        if kind != pair.kind:
            for tally, one in ((plus, kind), (minus, pair.kind)):
                if one is not None:
                    tally[pair.language, one] += 1
    return {
        "pairs": pairs,
        "flags": now.total(),
        "replayed": then.total(),
        "verdicts": {
            "real": judged.total() - judged[Verdict.NOT_SIMILAR],
            "lost": {verdict: n for verdict, n in unflagged.items() if n and verdict is not Verdict.NOT_SIMILAR},
            "not_similar": judged[Verdict.NOT_SIMILAR],
            "spared": unflagged[Verdict.NOT_SIMILAR],
        },
        "by_language": {
            language: {
                kind: {
                    "flags": now[language, kind],
                    "replayed": then[language, kind],
                    "plus": plus[language, kind],
                    "minus": minus[language, kind],
                }
                for kind in kinds()
                if now[language, kind] or then[language, kind]
            }
            for language in languages.numbers(db)
            if any(now[language, kind] or then[language, kind] for kind in kinds())
        },
    }
