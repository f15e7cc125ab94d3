"""Counts and logs what the caps of [detection] kept a sweep from comparing."""

from neardup.records import Language
from neardup.telemetry.log import log
from neardup.telemetry.metrics import CAPPED, CAPPED_BUCKETS


def log_caps(language: Language, left_out: int, capped: dict[str, int]) -> None:
    """Count the matches of a language that max_matches left out, and the buckets, name -> size, over max_bucket."""
    if left_out:
        CAPPED.labels(language).inc(left_out)
        log.warning("max_matches reached", language=language, left_out=left_out)
    if capped:
        CAPPED_BUCKETS.labels(language).inc(len(capped))
        longest = max(capped, key=lambda name: capped[name])
        log.warning("max_bucket reached", runs=len(capped), longest=f"{language} {longest}", members=capped[longest])
