"""Sets of numbers, by sets.c: how many the sets of pairs share, and the grams of a skeleton."""

from collections.abc import Sequence
from ctypes import c_int64, c_void_p

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.native import address, bind, check_code, list_addresses
from neardup.core.text.consonants import classify_consonants

HASH, NUMBER, PLACE = np.dtype(np.uint64), np.dtype(np.uint32), np.dtype(np.int32)

_array = c_void_p, c_int64
_count_shared = bind("nd_count_shared_of_pairs", *_array, *_array, c_void_p)
_count_uncommon = bind("nd_count_uncommon_of_pairs", *_array, *_array, *_array, c_void_p)
_skeleton_grams = bind("nd_skeleton_grams", *_array, *_array, c_int64, c_void_p, c_void_p)

_skeleton = bind("nd_skeleton", *_array, *_array, c_void_p, c_void_p)


def count_shared_of_pairs(sets: Sequence[Hashes], pairs: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    sets, pairs = list(map(np.ascontiguousarray, sets)), np.ascontiguousarray(pairs)
    rows, shared = list_addresses(sets, HASH), np.empty(len(pairs), np.int64)
    arrays = address(rows, np.int64), len(rows), address(pairs, PLACE), len(pairs)
    check_code(_count_shared(*arrays, address(shared, np.int64)))
    return shared


def count_uncommon_of_pairs(
    sets: Sequence[npt.NDArray[np.uint32]], pairs: npt.NDArray[np.int32], common: npt.NDArray[np.uint32]
) -> npt.NDArray[np.int64]:
    sets = list(map(np.ascontiguousarray, sets))
    pairs, common = np.ascontiguousarray(pairs), np.ascontiguousarray(common)
    rows, shared = list_addresses(sets, NUMBER), np.empty(len(pairs), np.int64)
    arrays = address(rows, np.int64), len(rows), address(pairs, PLACE), len(pairs), address(common, NUMBER), len(common)
    check_code(_count_uncommon(*arrays, address(shared, np.int64)))
    return shared


def pack_skeleton_grams(normalised: bytes, size: int) -> npt.NDArray[np.uint32]:
    classes, length = classify_consonants(), len(normalised)
    text = np.frombuffer(normalised, np.uint8)
    entries, grams = np.empty(length, np.uint8), np.empty(length, np.uint32)
    arguments = address(text, np.uint8), length, address(classes, np.uint8), len(classes), size
    count = check_code(_skeleton_grams(*arguments, address(entries, np.uint8), address(grams, NUMBER)))
    return grams[:count]


def find_skeleton_parts(normalised: bytes) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    table, length = classify_consonants(), len(normalised)
    text = np.frombuffer(normalised, np.uint8)
    classes, words = np.empty(length, np.uint8), np.empty(length, np.int32)
    arguments = address(text, np.uint8), length, address(table, np.uint8), len(table)
    count = check_code(_skeleton(*arguments, address(classes, np.uint8), address(words, PLACE)))
    return classes[:count].copy(), words[:count].copy()
