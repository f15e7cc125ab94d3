"""Lookups at a given size: their rates, their recall of planted copies, and the candidates that they return."""

import time
from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
from msgspec import Struct, field
from neardup.core.candidates.select import Nominee, merge_found, select_matches
from neardup.core.languages import LANGUAGES
from neardup.index.protocol import LookupResult
from neardup.index.redis.client import cut_batches
from neardup.ledger import Ledger, versions

from tests.bench.ledger_size import BATCH
from tests.bench.scale_corpus import Probe, without_signatures
from tests.bench.scale_stages import DETECTION, Figures, Setup, opened

THRESHOLDS = {language: DETECTION.of(language) for language in LANGUAGES}
TIERS = ("near", "both")  # lookups by SimHash alone, and by SimHash and signature


class Lookups(Struct, frozen=True):
    """The probes, and the number of the ledger's last story when they were drawn."""

    probes: Sequence[Probe]
    last: int


async def look_up(setup: Setup, lookups: Lookups) -> Figures:
    """The figures of the lookups of each tier, and the count and a digest of the pairs nominated by both fingerprints.

    Pairs with stories after `lookups.last` are left out, so that all indexes must give the same digest.
    """
    async with opened(setup) as (index, ledger):
        figures: Figures = {}
        pairs, digest = 0, blake2b(digest_size=8)
        for tier, probes in zip(TIERS, (without_signatures(lookups.probes), lookups.probes), strict=True):
            await index.look_up([probes[0].banded])  # the first lookup loads compiled code
            tally = _Tally()
            for batch in cut_batches(probes, BATCH):
                start = time.perf_counter()
                _, results = await index.look_up([probe.banded for probe in batch])
                tally.seconds.append(time.perf_counter() - start)
                tally.add(batch, results)
                if tier == TIERS[-1]:
                    for nominee in await _nominated(ledger, batch, results, lookups.last):
                        pairs += len(nominee.matches)
                        digest.update(repr(nominee).encode())
            figures[tier] = tally.figures()
        return figures | {"nominated": {"pairs": pairs, "digest": digest.hexdigest()}}


async def _nominated(
    ledger: Ledger, batch: Sequence[Probe], results: Sequence[LookupResult], last: int
) -> list[Nominee]:
    """The matches that a run would nominate for these lookup results, without stories after `last`."""
    candidates = await ledger.do(versions.read_existing_fingerprints, *merge_found(results))
    groups = [([-1 - n], probe.banded) for n, probe in enumerate(batch)]
    return select_matches(groups, results, candidates.where(candidates.numbers <= last), THRESHOLDS)


class _Tally(Struct):
    """Counts of lookups.

    `seconds` has the time of each batch.  `found` records, for each planted copy, whether its original was found.
    `candidates` has the number of candidates of each unrelated probe, by language and for `all`.
    """

    seconds: list[float] = field(default_factory=list)
    found: list[bool] = field(default_factory=list)
    candidates: dict[str, list[int]] = field(default_factory=dict)
    lookups: int = 0
    large: int = 0

    def add(self, batch: Sequence[Probe], results: Sequence[LookupResult]) -> None:
        self.lookups += len(batch)
        for probe, result in zip(batch, results, strict=True):
            number, story_id = probe.original
            self.large += bool(result.large)
            if not number:
                for group in ("all", probe.banded.language):
                    self.candidates.setdefault(group, []).append(len(result.ids) + len(result.numbers))
            elif probe.near or probe.shares_bands:
                self.found.append(number in result.numbers or story_id in result.ids)

    def figures(self) -> Figures:
        return {
            "lookups": self.lookups,
            "per_second": self.lookups / sum(self.seconds),
            "batch_milliseconds": _mean_p50_p99([1000 * seconds for seconds in self.seconds]),
            "planted": len(self.found),
            "recall": float(np.mean(self.found)),
            "large": self.large,
            "candidates": {group: _mean_p50_p99(counts) for group, counts in self.candidates.items()},
        }


def _mean_p50_p99(values: Sequence[float]) -> dict[str, float]:
    return {"mean": float(np.mean(values)), **{f"p{n}": float(np.percentile(values, n)) for n in (50, 99)}}
