"""Binds `alignment.c` and `sets.c`: what two texts share, by their words, their hashes and their skeletons."""

import threading
from collections.abc import Iterator, Sequence
from ctypes import c_char_p, c_int64, c_void_p

import numpy as np
import numpy.typing as npt

from neardup.core.native import (
    BOOL,
    INT32,
    INT64,
    UINT8,
    UINT32,
    UINT64,
    address,
    bind,
    check_code,
    list_addresses,
)
from neardup.core.text.consonants import Classes, classify_consonants
from neardup.records import Copied, Spans

LEAST_KEPT, MOST_KEPT = 1 << 12, 1 << 13  # words of a text for which a thread keeps the room
HEADER = 5  # numbers of the struct nd_copied
USUAL_SPANS = 64  # of a pair, for which memory is reserved

Hashes = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.uint32]
PassageHashes = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]  # (words,)
Pairs = npt.NDArray[np.int32]  # (m, 3): the places of two texts or sets, and how many equal words a copy has

_words, _numbers, _rows, _pairs, _codes = ((kind, c_int64) for kind in (UINT64, UINT32, INT64, INT32, UINT8))
_room, _utf8 = (c_void_p, c_int64), (c_char_p, c_int64)
_room_bytes = bind("nd_alignment_room", c_int64, c_int64)
_aligned = bind("nd_aligned", *_words, *_words, *_room)
_copied_pairs = bind("nd_copied_pairs", *_rows, *_pairs, *_numbers, INT64, *_pairs, *_room)
_sampled_passages = bind("nd_sampled_passages", *_words, UINT32, *_room)
_are_own = bind("nd_are_own", *_words, *_numbers, BOOL, *_room)
_count_shared = bind("nd_count_shared_of_pairs", *_rows, *_pairs, INT64)
_count_uncommon = bind("nd_count_uncommon_of_pairs", *_rows, *_pairs, *_numbers, INT64)
_skeleton_grams = bind("nd_skeleton_grams", *_utf8, *_codes, c_int64, UINT8, UINT32)
_skeleton = bind("nd_skeleton", *_utf8, *_codes, UINT8, INT32)


class _Room:
    """Room for two texts of so many words each."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.memory: npt.NDArray[np.int64] = np.empty(-(-check_code(_room_bytes(words, words)) // 8), np.int64)
        self.span = address(self.memory, np.int64), self.memory.nbytes


class _Kept(threading.local):
    """The room of a thread: it grows to that of MOST_KEPT words, of which only the pages that are used take memory."""

    room: _Room | None = None


_kept = _Kept()


def _get_room(words: int) -> _Room:
    """Room for two texts of at most so many words.  The caller holds it while a function uses its address."""
    room = _kept.room
    if room is None or room.words < words:
        room = _Room(LEAST_KEPT if words <= LEAST_KEPT else max(words, MOST_KEPT))
        if room.words <= MOST_KEPT:
            _kept.room = room
    return room


def align(a: Hashes, b: Hashes) -> npt.NDArray[np.int32]:
    a, b = map(np.ascontiguousarray, (a, b))
    room = _get_room(max(len(a), len(b)))
    rows = check_code(_aligned(a, len(a), b, len(b), *room.span))
    return room.memory[: 2 * rows].view(np.int32).reshape(-1, 4).copy()


def find_copied_of_pairs(texts: Sequence[Hashes], pairs: Pairs, common: PassageHashes) -> list[Copied]:
    if not len(pairs):
        return []
    used, places = np.unique(pairs[:, :2], return_inverse=True)  # of many texts, often few are in the pairs
    texts = [np.ascontiguousarray(texts[place]) for place in used.tolist()]
    pairs = np.column_stack((places.reshape(-1, 2), pairs[:, 2])).astype(np.int32)
    common = np.ascontiguousarray(common)
    rows, longest = list_addresses(texts, np.uint64), max(map(len, texts), default=0)
    headers = np.empty((len(pairs), HEADER), np.int64)
    found, done = list[Copied](), 0
    while done < len(pairs):
        room, left = _get_room(longest), pairs[done:]
        spans = np.empty((max(2 * longest, USUAL_SPANS * len(left)), 2), np.int32)  # enough for any pair
        arguments = rows, len(rows), left, len(left), common, len(common), headers, spans, len(spans)
        here = check_code(_copied_pairs(*arguments, *room.span))
        found += _read_results(headers[:here], spans)
        done += here
    return found


def _read_results(headers: npt.NDArray[np.int64], spans: Spans) -> Iterator[Copied]:
    """What was found of pairs, of which each has a header, and spans after those of the pair before it."""
    at = 0
    for words, common_words, longest, spans_a, spans_b in headers.tolist():
        middle, end = at + spans_a, at + spans_a + spans_b
        longest_run = None if longest < 0 else longest
        yield Copied(words, common_words, spans[at:middle], spans[middle:end], longest_run)
        at = end


def sample_passages(words: Hashes) -> PassageHashes:
    words = np.ascontiguousarray(words)
    hashes, room = np.empty(len(words), np.uint32), _get_room(len(words))
    return hashes[: check_code(_sampled_passages(words, len(words), hashes, *room.span))]


def are_own(words: Hashes, common: PassageHashes) -> Mask:
    words, common = map(np.ascontiguousarray, (words, common))
    own, room = np.empty(len(words), np.bool_), _get_room(len(words))
    check_code(_are_own(words, len(words), common, len(common), own, *room.span))
    return own


def count_shared_of_pairs(sets: Sequence[Hashes], pairs: Pairs) -> Counts:
    sets, pairs = list(map(np.ascontiguousarray, sets)), np.ascontiguousarray(pairs)
    rows, shared = list_addresses(sets, np.uint64), np.empty(len(pairs), np.int64)
    check_code(_count_shared(rows, len(rows), pairs, len(pairs), shared))
    return shared


def count_uncommon_of_pairs(sets: Sequence[Numbers], pairs: Pairs, common: Numbers) -> Counts:
    sets = list(map(np.ascontiguousarray, sets))
    pairs, common = np.ascontiguousarray(pairs), np.ascontiguousarray(common)
    rows, shared = list_addresses(sets, np.uint32), np.empty(len(pairs), np.int64)
    check_code(_count_uncommon(rows, len(rows), pairs, len(pairs), common, len(common), shared))
    return shared


def pack_skeleton_grams(normalised: bytes, size: int) -> Numbers:
    table, length = classify_consonants(), len(normalised)
    entries, grams = np.empty(length, np.uint8), np.empty(length, np.uint32)
    return grams[: check_code(_skeleton_grams(normalised, length, table, len(table), size, entries, grams))]


def find_skeleton_parts(normalised: bytes) -> tuple[Classes, npt.NDArray[np.int32]]:
    table, length = classify_consonants(), len(normalised)
    classes, words = np.empty(length, np.uint8), np.empty(length, np.int32)
    count = check_code(_skeleton(normalised, length, table, len(table), classes, words))
    return classes[:count].copy(), words[:count].copy()
