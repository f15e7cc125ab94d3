"""[ledger]: the SQLite file that holds the durable state."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from neardup.config.section import Section


class Ledger(Section, frozen=True, kw_only=True):
    """[ledger]: the SQLite file that holds the durable state."""

    path: Annotated[Path, Meta(description="SQLite file that holds stories, flags, runs and dead letters.")] = Path(
        "var/neardup.db"
    )
