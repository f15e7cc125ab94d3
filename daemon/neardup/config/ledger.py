"""[ledger]: the SQLite file that holds the durable state."""

from pathlib import Path

from pydantic import Field

from neardup.config.section import Section


class Ledger(Section):
    """[ledger]: the SQLite file that holds the durable state."""

    path: Path = Field(
        default=Path("var/neardup.db"), description="SQLite file that holds stories, flags, runs and dead letters."
    )
