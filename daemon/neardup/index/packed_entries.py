"""Compares stories with the packed buckets that must hold their numbers (see neardup.index.packed_buckets)."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from neardup.errors import IndexDamaged
from neardup.index.packed_buckets import NUMBER, NUMBER_BYTES, Additions, LookupRequest
from neardup.records import BandedFingerprint, Change, Language

Entry = tuple[int, int]  # the position of a story among those compared, and one of its buckets

STORIES_PER_READ = 128  # their buckets take some ten megabytes


def by_language(stories: Sequence[Change]) -> dict[Language, list[tuple[int, BandedFingerprint]]]:
    """For each language the stories inserted by these changes: their positions and fingerprints."""
    found: dict[Language, list[tuple[int, BandedFingerprint]]] = defaultdict(list)
    for position, story in enumerate(stories):
        if story.new is not None:
            found[story.new.language].append((position, story.new))
    return found


def lacking(request: LookupRequest, numbers: Sequence[int], contents: Sequence[bytes | None]) -> list[Entry]:
    """The entries that the buckets lack of the stories of a request.

    `numbers` are the stories' numbers, `contents` those of the requested buckets; None for an empty one.  Raises
    IndexDamaged for a bucket that does not consist of numbers.
    """
    for content in contents:
        if content and len(content) % NUMBER_BYTES:
            raise IndexDamaged(f"the index is damaged: a bucket has {len(content)} bytes")
    signed = np.flatnonzero(request.signed).tolist()
    rows = [*enumerate(request.block_positions.tolist()), *zip(signed, request.band_positions.tolist(), strict=True)]
    digits = [number.to_bytes(NUMBER_BYTES, "little") for number in numbers]
    return [
        (story, int(request.buckets[place]))
        for story, places in rows
        for place in places
        if not _holds(contents[place] or b"", digits[story])
    ]


def _holds(content: bytes, number: bytes) -> bool:
    at = content.find(number)
    while at >= 0 and at % NUMBER_BYTES:
        at = content.find(number, at + 1)
    return at >= 0


def additions_of(entries: Sequence[Entry], numbers: Sequence[int]) -> Additions:
    """What adds the lacking entries to their buckets."""
    ordered = sorted((bucket, numbers[story]) for story, bucket in entries)
    buckets, counts = np.unique(np.array([bucket for bucket, _ in ordered], np.int64), return_counts=True)
    return Additions(buckets, counts, np.array([number for _, number in ordered], NUMBER).tobytes())
