"""What max_bucket left out of the lookups of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from neardup.index.protocol import Found
from neardup.records import Language
from neardup.telemetry.metrics import CAPPED_BUCKETS

log = structlog.get_logger()


@dataclass(slots=True)
class _Capped:
    """How often it was met in a language, and the fullest bucket."""

    times: int = 0
    fullest: str = ""
    members: int = 0


class Caps:
    """How often the lookups of each language met a bucket over max_bucket, and the fullest of these."""

    def __init__(self) -> None:
        self._each: dict[Language, _Capped] = {}

    def count(self, languages: Sequence[Language], found: Sequence[Found]) -> None:
        """Count what lookups met, in stories of these languages."""
        for language, one in zip(languages, found, strict=True):
            if not one.capped:
                continue
            CAPPED_BUCKETS.labels(language).inc(len(one.capped))
            capped = self._each.setdefault(language, _Capped())
            capped.times += len(one.capped)
            fullest = max(one.capped, key=lambda bucket: one.capped[bucket])
            if one.capped[fullest] > capped.members:
                capped.fullest, capped.members = fullest, one.capped[fullest]

    def tell(self) -> None:
        """Log what was left out, a line a language."""
        for language, capped in self._each.items():
            log.warning(
                "max_bucket reached",
                language=language,
                times=capped.times,
                fullest=capped.fullest,
                members=capped.members,
            )
