"""[ledger]: the SQLite file that holds the durable state."""

from pathlib import Path

from neardup.config.section import Section, setting


class Ledger(Section):
    """[ledger]: the SQLite file that holds the durable state."""

    path: Path = setting(
        default=Path("var/neardup.db"), description="SQLite file that holds stories, flags, runs and dead letters."
    )
