"""What an interrupted sweep has done, so that the next one continues there."""

import json
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec

from neardup.config import Detection
from neardup.ledger import Ledger, outbox, runs
from neardup.records import Language

KEY = "sweep"


@dataclass(slots=True)
class SweepCheckpoint:
    """The languages that are done, and the number of the last story all of whose pairs by passages are on record.

    It holds for stories and thresholds as in `basis`.
    """

    basis: dict[str, Any]
    languages: list[Language] = field(default_factory=list)
    through: int = 0

    @classmethod
    async def load(cls, ledger: Ledger, detection: Detection) -> Self:
        """The checkpoint on record; one at the start if there is none, or stories or thresholds have changed since."""
        basis = {
            "last_change": await ledger.do(outbox.last_seq),
            "detection": msgspec.to_builtins(detection),
        }
        text = await ledger.do(runs.get, KEY)
        recorded = json.loads(text) if text else {}
        if recorded.get("basis") != basis:
            return cls(basis)
        return cls(basis, recorded["languages"], recorded["through"])

    async def save(self, ledger: Ledger) -> None:
        """Record it."""
        values = {"basis": self.basis, "languages": self.languages, "through": self.through}
        await ledger.do(runs.put, KEY, json.dumps(values))

    @staticmethod
    async def clear(ledger: Ledger) -> None:
        """Record that no sweep is to be continued."""
        await ledger.do(runs.put, KEY, "{}")
