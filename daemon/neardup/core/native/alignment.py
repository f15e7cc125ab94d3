"""What two texts share, by alignment.c: the functions of `core.verify` that compare words."""

import threading
from ctypes import c_int64, c_void_p

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.native import address, bind, checked
from neardup.records import NO_SPANS, Copied

LEAST_KEPT, MOST_KEPT = 1 << 12, 1 << 13  # words of a text for which a thread keeps the room
WORD_HASH, PASSAGE_HASH = np.dtype(np.uint64), np.dtype(np.uint32)
HEADER = 5  # numbers of the struct nd_copied

_text = c_void_p, c_int64
_room_bytes = bind("nd_alignment_room", c_int64, c_int64)
_aligned = bind("nd_aligned", *_text, *_text, c_void_p, c_int64)
_copied = bind("nd_copied", *_text, *_text, *_text, c_int64, c_void_p, c_int64)
_own_pairs = bind("nd_own_pairs", *_text, *_text, c_void_p, c_void_p, c_void_p, c_int64)


class _Room:
    """Room for two texts of so many words each."""

    def __init__(self, words: int) -> None:
        self.words = words
        self.memory: npt.NDArray[np.int64] = np.empty(-(-checked(_room_bytes(words, words)) // 8), np.int64)
        self.span = address(self.memory, np.int64), self.memory.nbytes


class _Kept(threading.local):
    """The room of a thread: it grows to that of MOST_KEPT words, of which only the pages that are used take memory."""

    room: _Room | None = None


_kept = _Kept()


def _room(words: int) -> _Room:
    """Room for two texts of at most so many words.  The caller holds it while a function uses its address."""
    room = _kept.room
    if room is None or room.words < words:
        room = _Room(max(words, LEAST_KEPT) if words <= LEAST_KEPT else max(words, MOST_KEPT))
        if room.words <= MOST_KEPT:
            _kept.room = room
    return room


def aligned(a: Hashes, b: Hashes) -> npt.NDArray[np.int32]:
    a, b = map(np.ascontiguousarray, (a, b))
    room = _room(max(len(a), len(b)))
    rows = checked(_aligned(address(a, WORD_HASH), len(a), address(b, WORD_HASH), len(b), *room.span))
    return room.memory[: 2 * rows].view(np.int32).reshape(-1, 4).copy()


def copied(a: Hashes, b: Hashes, common: PassageHashes, at_least: int) -> Copied:
    a, b, common = map(np.ascontiguousarray, (a, b, common))
    room = _room(max(len(a), len(b)))
    texts = address(a, WORD_HASH), len(a), address(b, WORD_HASH), len(b)
    hashes = address(common, PASSAGE_HASH) if len(common) else None, len(common)
    checked(_copied(*texts, *hashes, at_least, *room.span))
    words, common_words, longest, spans_a, spans_b = room.memory[:HEADER].tolist()
    longest_run = None if longest < 0 else longest
    if not spans_a and not spans_b:
        return Copied(words, common_words, NO_SPANS, NO_SPANS, longest_run)
    spans = room.memory[HEADER : HEADER + spans_a + spans_b].copy().view(np.int32).reshape(-1, 2)
    return Copied(words, common_words, spans[:spans_a], spans[spans_a:], longest_run)


def own_pairs(words: Hashes, common: PassageHashes) -> Hashes:
    words, common = map(np.ascontiguousarray, (words, common))
    pairs, marks, room = np.empty(len(words), np.uint64), np.empty(len(words), np.uint8), _room(len(words))
    text = address(words, WORD_HASH), len(words)
    hashes = address(common, PASSAGE_HASH), len(common)
    count = checked(_own_pairs(*text, *hashes, address(pairs, WORD_HASH), address(marks, np.uint8), *room.span))
    return pairs[:count]
