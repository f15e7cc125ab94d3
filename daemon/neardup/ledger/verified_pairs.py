"""The verified pairs on record: flags and near misses with the signals by which they were decided."""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from neardup.ledger import languages
from neardup.ledger.signals import SIGNAL_COLUMNS, signals_of
from neardup.records import Kind, Language, Signals, Verdict

MEASURED = ", ".join(SIGNAL_COLUMNS)


@dataclass(frozen=True, slots=True)
class VerifiedPair:
    """A verified pair on record; `kind` is None for a near miss, `verdict` where no moderator has given one."""

    language: Language
    kind: Kind | None
    signals: Signals
    verdict: Verdict | None


def verified(db: sqlite3.Connection, since: int, until: int) -> Iterator[VerifiedPair]:
    """The flags that are not withdrawn and the near misses of [since, until) (milliseconds)."""
    rows = db.execute(
        f"SELECT language, kind, nullif(status, 'open'), {MEASURED} FROM flags"
        " WHERE status <> 'withdrawn' AND flagged_at >= ?1 AND flagged_at < ?2"
        f" UNION ALL SELECT s.language, NULL, NULL, {MEASURED} FROM candidates JOIN stories s ON s.id = a"
        " WHERE verified_at >= ?1 AND verified_at < ?2",
        (since, until),
    )
    name_of = languages.names(db)
    for language, kind, verdict, *columns in rows:
        signals = signals_of(kind, columns)
        yield VerifiedPair(name_of[language], kind, signals, Verdict(verdict) if verdict else None)
