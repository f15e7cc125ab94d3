"""Counts the buckets that the lookups of a run did not read in full, because of max_bucket."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from neardup.index.protocol import LookupResult
from neardup.records import Language
from neardup.telemetry.metrics import CAPPED_BUCKETS

log = structlog.get_logger()


@dataclass(slots=True)
class _Capped:
    """How often lookups of a language read a capped bucket, and the fullest of these."""

    times: int = 0
    fullest: str = ""
    members: int = 0


class Caps:
    """How often the lookups of each language read a bucket over max_bucket, and the fullest of these."""

    def __init__(self) -> None:
        self._each: dict[Language, _Capped] = {}

    def count(self, languages: Sequence[Language], results: Sequence[LookupResult]) -> None:
        """Count the capped buckets in the results of stories of these languages."""
        for language, result in zip(languages, results, strict=True):
            if not result.capped:
                continue
            CAPPED_BUCKETS.labels(language).inc(len(result.capped))
            capped = self._each.setdefault(language, _Capped())
            capped.times += len(result.capped)
            fullest = max(result.capped, key=lambda bucket: result.capped[bucket])
            if result.capped[fullest] > capped.members:
                capped.fullest, capped.members = str(fullest), result.capped[fullest]

    def tell(self) -> None:
        """Log one line per language with capped buckets."""
        for language, capped in self._each.items():
            log.warning(
                "max_bucket reached",
                language=language,
                times=capped.times,
                fullest=capped.fullest,
                members=capped.members,
            )
