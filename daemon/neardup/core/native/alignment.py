"""What two texts share, by alignment.c: the functions of `core.verify` that compare words."""

import threading
from collections.abc import Iterator, Sequence
from ctypes import c_int64, c_void_p

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import Hashes, PassageHashes
from neardup.core.native import address, bind, check_code, list_addresses
from neardup.records import Copied, Spans

LEAST_KEPT, MOST_KEPT = 1 << 12, 1 << 13  # words of a text for which a thread keeps the room
WORD_HASH, PASSAGE_HASH = np.dtype(np.uint64), np.dtype(np.uint32)
HEADER = 5  # numbers of the struct nd_copied
USUAL_SPANS = 64  # of a pair, for which memory is reserved

Mask = npt.NDArray[np.bool_]  # (words,)
Pairs = npt.NDArray[np.int32]  # (m, 3): the places of two texts, and how many equal words their blocks must have

_text = c_void_p, c_int64
_room_bytes = bind("nd_alignment_room", c_int64, c_int64)
_aligned = bind("nd_aligned", *_text, *_text, c_void_p, c_int64)
_copied_pairs = bind("nd_copied_pairs", *_text, *_text, *_text, c_void_p, *_text, *_text)
_sampled_passages = bind("nd_sampled_passages", *_text, c_void_p, c_void_p, c_int64)
_are_own = bind("nd_are_own", *_text, *_text, c_void_p, c_void_p, c_int64)


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
    rows = check_code(_aligned(address(a, WORD_HASH), len(a), address(b, WORD_HASH), len(b), *room.span))
    return room.memory[: 2 * rows].view(np.int32).reshape(-1, 4).copy()


def find_copied_of_pairs(texts: Sequence[Hashes], pairs: Pairs, common: PassageHashes) -> list[Copied]:
    if not len(pairs):
        return []
    used, places = np.unique(pairs[:, :2], return_inverse=True)  # of many texts, often few are in the pairs
    texts = [np.ascontiguousarray(texts[place]) for place in used.tolist()]
    pairs = np.column_stack((places.reshape(-1, 2), pairs[:, 2])).astype(np.int32)
    common = np.ascontiguousarray(common)
    rows, longest = list_addresses(texts, WORD_HASH), max(map(len, texts), default=0)
    headers = np.empty((len(pairs), HEADER), np.int64)
    found, done = list[Copied](), 0
    while done < len(pairs):
        room, left = _get_room(longest), pairs[done:]
        spans = np.empty((max(2 * longest, USUAL_SPANS * len(left)), 2), np.int32)  # enough for any pair
        arguments = address(rows, np.int64), len(rows), address(left, np.int32), len(left)
        hashes = address(common, PASSAGE_HASH), len(common)
        output = address(headers, np.int64), address(spans, np.int32), len(spans)
        here = check_code(_copied_pairs(*arguments, *hashes, *output, *room.span))
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
    text = address(words, WORD_HASH), len(words)
    return hashes[: check_code(_sampled_passages(*text, address(hashes, PASSAGE_HASH), *room.span))]


def are_own(words: Hashes, common: PassageHashes) -> Mask:
    words, common = map(np.ascontiguousarray, (words, common))
    own, room = np.empty(len(words), np.bool_), _get_room(len(words))
    text = address(words, WORD_HASH), len(words)
    check_code(_are_own(*text, address(common, PASSAGE_HASH), len(common), address(own, np.bool_), *room.span))
    return own
