"""Lookups at a size: their rates, whether they find what was planted, and how many candidates they meet."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from neardup.core.candidates.select import Nominee, nominate, together
from neardup.index.protocol import LookupResult
from neardup.index.redis.commands import batches
from neardup.languages import LANGUAGES
from neardup.ledger import Ledger, fingerprint_arrays

from tests.bench.ledger_size import BATCH
from tests.bench.scale_corpus import Probe, unsigned
from tests.bench.scale_stages import DETECTION, Bed, Figures, opened

LIMITS = {language: DETECTION.of(language) for language in LANGUAGES}
TIERS = ("near", "both")  # what is looked up: SimHashes alone, or with their signatures


@dataclass(frozen=True, slots=True)
class Lookups:
    """What is looked up, and the number of the ledger's last story when the copies were planted."""

    probes: Sequence[Probe]
    last: int


async def look_up(bed: Bed, lookups: Lookups) -> Figures:
    """Both tiers' lookups; and of the pairs that these nominate, with stories up to the last, a digest."""
    async with opened(bed) as (index, ledger):
        figures: Figures = {}
        pairs, digest = 0, blake2b(digest_size=8)
        for tier, asked in zip(TIERS, (unsigned(lookups.probes), lookups.probes), strict=True):
            await index.lookup([asked[0].banded])  # whatever comes with a first call
            tally = _Tally()
            for batch in batches(asked, BATCH):
                began = time.perf_counter()
                _, found = await index.lookup([one.banded for one in batch])
                tally.seconds.append(time.perf_counter() - began)
                tally.add(batch, found)
                if tier == TIERS[-1]:
                    for one in await _nominated(ledger, batch, found, lookups.last):
                        pairs += len(one.matches)
                        digest.update(repr(one).encode())
            figures[tier] = tally.figures()
        return figures | {"nominated": {"pairs": pairs, "digest": digest.hexdigest()}}


async def _nominated(ledger: Ledger, batch: Sequence[Probe], found: Sequence[LookupResult], last: int) -> list[Nominee]:
    """The pairs that a run finds worth comparing, given what its lookups brought up."""
    held = await ledger.do(fingerprint_arrays.held, *together(found))
    groups = [([-1 - n], probe.banded) for n, probe in enumerate(batch)]
    return nominate(groups, found, held.where(held.numbers <= last), LIMITS)


@dataclass(slots=True)
class _Tally:
    """What lookups took and brought up: seconds of each batch, whether planted copies below the caps were found,
    and by language how many candidates strangers met.
    """

    seconds: list[float] = field(default_factory=list)
    planted: list[bool] = field(default_factory=list)
    met: dict[str, list[int]] = field(default_factory=dict)
    lookups: int = 0
    capped: int = 0

    def add(self, batch: Sequence[Probe], found: Sequence[LookupResult]) -> None:
        self.lookups += len(batch)
        for probe, one in zip(batch, found, strict=True):
            number, story_id = probe.original
            self.capped += bool(one.capped)
            if not number:
                for whose in ("all", probe.banded.language):
                    self.met.setdefault(whose, []).append(len(one.ids) + len(one.numbers))
            elif (probe.near or probe.alike) and not one.capped:
                self.planted.append(number in one.numbers or story_id in one.ids)

    def figures(self) -> Figures:
        return {
            "lookups": self.lookups,
            "per_second": self.lookups / sum(self.seconds),
            "batch_milliseconds": _spread([1000 * seconds for seconds in self.seconds]),
            "planted": len(self.planted),
            "recall": float(np.mean(self.planted)),
            "capped": self.capped,
            "candidates": {whose: _spread(counts) for whose, counts in self.met.items()},
        }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": float(np.mean(values)), **{f"p{n}": float(np.percentile(values, n)) for n in (50, 99)}}
