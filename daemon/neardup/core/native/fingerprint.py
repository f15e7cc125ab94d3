"""Binds `normalise.c` and `fingerprint.c`: a text in UTF-8 -> its fingerprint, its words, counts of its characters."""

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from struct import Struct
from typing import NamedTuple

import numpy as np

from neardup.core.fingerprint.common_words import filter_bits, load_common_words
from neardup.core.fingerprint.minhash import ADDENDS, MIN_SHINGLES, MULTIPLIERS, ROWS
from neardup.core.fingerprint.word_hashes import Hashes, PassageHashes, weigh_frequencies
from neardup.core.native import ROOM, Array, address, bind, check_code, list_fields
from neardup.core.text.consonants import classify_consonants
from neardup.core.text.normalize import load_tables, load_tables_of_normalised
from neardup.records import Fingerprint

MOST_FREQUENT = 1 << 16  # occurrences of a word, more than in a long novel
BLOCKS = 0x110000 // 128
RARE_PAIRS = 14  # ND_RARE_PAIRS of neardup.h
ROOM_PER_BYTE, LEAST_ROOM = 14, 1 << 16  # bytes: enough for nearly all texts
KEPT_ROOM = 1 << 23  # bytes that a thread keeps between two texts; a longer one gets room of its own

# The fields of core.text.scripts.Characters.
CharacterCounts = tuple[int, int, int, int, int, int, tuple[tuple[int, int], ...]]


class _Tables(ctypes.Structure):
    _fields_ = list_fields(
        "forms[] compositions[] readings[] consonants[] weights[] *multipliers *addends *common_words common_bits",
        ctypes.c_uint64,
    )


class HashedText(NamedTuple):
    """A normalised text in UTF-8, the hash of each word, and the hashes of the skeleton, ascending."""

    normalised: bytes
    words: Hashes
    skeleton_hashes: PassageHashes


class _Result(NamedTuple):
    """The fields of nd_fingerprint."""

    room: int
    words: int
    shingles: int
    normalised: int
    normalised_bytes: int
    hashes: int
    passages: int
    passage_count: int
    text_hash: bytes
    simhash: bytes
    signature: bytes


_RESULT = Struct(f"=8Q16s16s{ROWS}s")
_CHARACTERS = Struct("=6I")  # the fields of nd_characters


class CountMemory:
    """Memory for the counts of a text's characters; `at` are the addresses that nd_count_characters takes."""

    def __init__(self) -> None:
        self._characters = np.zeros(_CHARACTERS.size, np.uint8)
        self._block_counts = np.empty(BLOCKS, np.uint32)
        self._block_numbers = np.empty(BLOCKS, np.uint16)
        self.at = self._block_counts.ctypes.data, self._block_numbers.ctypes.data, self._characters.ctypes.data

    def get_counts(self, length: int) -> CharacterCounts:
        """What was counted of a text of so many characters."""
        *counts, size = _CHARACTERS.unpack(self._characters.data)
        numbers, letters = self._block_numbers[:size].tolist(), self._block_counts[:size].tolist()
        return length, *counts, tuple(zip(numbers, letters, strict=True))


class _Memory(threading.local):
    """What a thread uses for one text after another, and the addresses of these arrays."""

    def __init__(self) -> None:
        self.set_room(np.empty(LEAST_ROOM, np.uint8))
        self.result = np.zeros(_RESULT.size, np.uint8)
        self.result_at = self.result.ctypes.data
        self.counts = CountMemory()

    def set_room(self, room: Array) -> None:
        self.room, self.room_at = room, room.ctypes.data


_memory = _Memory()
_ARGUMENTS = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_fingerprint_text = bind("nd_fingerprint_text", *_ARGUMENTS)
_hash_text = bind("nd_hash_text", *_ARGUMENTS)
_rare_pairs = bind("nd_rare_pairs", ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
_count_characters = bind(
    "nd_count_characters", ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)


def fingerprint_utf8(text: bytes, *, is_normalised: bool = False) -> Fingerprint | int:
    """A text in UTF-8 -> its fingerprint; a number for a text without words (0) or one that is UNSUPPORTED.

    Set `is_normalised` for a text that is normalised already.  Raises ValueError if the text is not in UTF-8.
    """
    words, result, _room = _call(_fingerprint_text, text, is_normalised)
    if result is None:
        return words
    return Fingerprint(
        text_hash=result.text_hash,
        simhash=result.simhash,
        signature=result.signature if result.shingles >= MIN_SHINGLES else None,
        words=words,
        shingles=result.shingles,
        passages=ctypes.string_at(result.passages, 4 * result.passage_count),
    )


def hash_utf8(text: bytes, *, is_normalised: bool = False) -> HashedText | int:
    """A text in UTF-8 -> its words and their hashes; otherwise as `fingerprint_utf8`."""
    words, result, _room = _call(_hash_text, text, is_normalised)
    if result is None:
        return words
    return HashedText(
        ctypes.string_at(result.normalised, result.normalised_bytes),
        np.frombuffer(ctypes.string_at(result.hashes, 8 * words), np.uint64).copy(),  # so that `address` is fast
        np.frombuffer(ctypes.string_at(result.passages, 4 * result.passage_count), np.uint32),
    )


def hash_rare_pairs(words: Hashes) -> PassageHashes:
    """As `core.fingerprint.compute.hash_rare_pairs`."""
    words, hashes, common = np.ascontiguousarray(words), np.empty(RARE_PAIRS, np.uint32), load_common_words()
    text = address(words, np.uint64), len(words)
    listed = address(common, np.uint64), filter_bits(common)
    return hashes[: check_code(_rare_pairs(*text, *listed, address(hashes, np.uint32)))]


def count_utf8_characters(text: bytes) -> CharacterCounts:
    """The counts of a text in UTF-8.  Raises ValueError if it is not in UTF-8."""
    counts = _memory.counts
    return counts.get_counts(check_code(_count_characters(text, len(text), *counts.at)))


def _call(function: Callable[..., int], text: bytes, is_normalised: bool) -> tuple[int, _Result | None, Array]:
    """What a function returns for a text, its result if there are words, and the room that holds parts of this."""
    room, room_at = _memory.room, _memory.room_at
    wanted = ROOM_PER_BYTE * len(text)
    constants = _hold_tables(is_normalised)  # held: of those that two threads make at once, the cache keeps one
    while True:
        if wanted > len(room):
            room = np.empty(wanted, np.uint8)
            room_at = room.ctypes.data
            if wanted <= KEPT_ROOM:
                _memory.set_room(room)
        words = check_code(function(constants.address, text, len(text), room_at, len(room), _memory.result_at))
        if words != ROOM:
            return words, _Result._make(_RESULT.unpack(_memory.result.data)) if words > 0 else None, room
        wanted = int(_memory.result.view(np.uint64)[0])


class _HeldTables:
    """The tables that every text needs, and the arrays that they point to."""

    def __init__(self, is_normalised: bool) -> None:
        forms, compositions, readings = load_tables_of_normalised() if is_normalised else load_tables()
        by_frequency = weigh_frequencies(np.maximum(np.arange(MOST_FREQUENT), 1)).astype(np.int64)  # 0 does not occur
        self._arrays = forms, compositions, readings, classify_consonants(), by_frequency
        self._structure = _Tables(
            *(address(forms, np.uint32), len(forms)),
            *(address(compositions, np.uint32), len(compositions)),
            *(address(readings, np.uint16), readings.shape[1]),
            *(address(classify_consonants(), np.uint8), len(classify_consonants())),
            *(address(by_frequency, np.int64), len(by_frequency)),
            *(address(MULTIPLIERS, np.uint64), address(ADDENDS, np.uint64)),
            *(address(load_common_words(), np.uint64), filter_bits(load_common_words())),
        )
        self.address = ctypes.addressof(self._structure)


@cache
def _hold_tables(is_normalised: bool) -> _HeldTables:
    return _HeldTables(is_normalised)
