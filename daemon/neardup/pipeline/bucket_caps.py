"""Counts the capped buckets of a run: those of which its lookups read only `max_bucket` members."""

from collections.abc import Sequence
from dataclasses import dataclass

from neardup.index.protocol import LookupResult
from neardup.records import Language
from neardup.telemetry.log import log
from neardup.telemetry.metrics import CAPPED_BUCKETS


@dataclass(slots=True)
class _CappedBuckets:
    """How often the lookups of a language read a capped bucket, and the fullest of these buckets."""

    times: int = 0
    fullest: str = ""
    members: int = 0  # of the fullest


class BucketCaps:
    """The capped buckets that the lookups of a run read, by language."""

    def __init__(self) -> None:
        self._by_language: dict[Language, _CappedBuckets] = {}

    def count(self, languages: Sequence[Language], results: Sequence[LookupResult]) -> None:
        """Count the capped buckets in the results of lookups; `languages` has the language of each."""
        for language, result in zip(languages, results, strict=True):
            if not result.capped:
                continue
            CAPPED_BUCKETS.labels(language).inc(len(result.capped))
            capped = self._by_language.setdefault(language, _CappedBuckets())
            capped.times += len(result.capped)
            fullest = max(result.capped, key=lambda bucket: result.capped[bucket])
            if result.capped[fullest] > capped.members:
                capped.fullest, capped.members = str(fullest), result.capped[fullest]

    def log(self) -> None:
        """Log one line for each language with capped buckets."""
        for language, capped in self._by_language.items():
            log.warning(
                "max_bucket reached",
                language=language,
                times=capped.times,
                fullest=capped.fullest,
                members=capped.members,
            )
