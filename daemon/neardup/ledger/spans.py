"""Spans of copied words, [start, end) in words, packed into a few bytes each.

The bounds of the spans in their order are stored as differences, each from the bound before it, as variable-length
integers of 7 bits a byte (LEB128).  The sign of a difference is its lowest bit, so that any order can be stored.
"""

import sqlite3

import numpy as np

from neardup.records import NO_SPANS, Spans

MORE = 0x80  # the bit of a byte after which its integer goes on


def packed(spans: Spans) -> bytes | None:
    """(n, 2) spans -> bytes; None for no spans."""
    encoded, before = bytearray(), 0
    for bound in spans.ravel().tolist():  # few, so that numpy would take longer
        step = bound - before
        before, number = bound, -2 * step - 1 if step < 0 else 2 * step
        while number >= MORE:
            encoded.append(number & 0x7F | MORE)
            number >>= 7
        encoded.append(number)
    return bytes(encoded) or None


def unpacked(data: bytes | None) -> Spans:
    """The inverse of `packed`."""
    if data is None:
        return NO_SPANS
    bounds, bound, number, shift = list[int](), 0, 0, 0
    for octet in data:
        number |= (octet & 0x7F) << shift
        shift += 7
        if octet < MORE:
            bound += number >> 1 ^ -(number & 1)
            bounds.append(bound)
            number = shift = 0
    return np.array(bounds, np.int32).reshape(-1, 2)


def union(spans: Spans) -> Spans:
    """(n, 2) spans in any order -> (m, 2) the same words in spans that neither overlap nor touch, ascending."""
    if not len(spans):
        return spans
    ascending = spans[np.argsort(spans[:, 0], kind="stable")]
    reach = np.maximum.accumulate(ascending[:, 1])
    opens = np.concatenate(([True], ascending[1:, 0] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return np.stack((ascending[opens, 0], reach[closes]), axis=1)


def words_in(spans: Spans) -> int:
    """The number of words in (n, 2) spans; a word in several of them counts once."""
    bounds = union(spans)
    return int((bounds[:, 1] - bounds[:, 0]).sum())


def of_flags(db: sqlite3.Connection, story_id: int) -> dict[int, tuple[Spans, Spans]]:
    """The spans of each flag of a story, by the flag's id: those of the story, and those of the other one."""
    rows = db.execute(
        "SELECT flag_id, spans_a, spans_b FROM flags WHERE a = ?1 UNION ALL"
        " SELECT flag_id, spans_b, spans_a FROM flags WHERE b = ?1",
        (story_id,),
    )
    return {flag_id: (unpacked(own), unpacked(other)) for flag_id, own, other in rows}
