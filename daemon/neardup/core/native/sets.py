"""Sets of numbers, by sets.c: how many two share, and the grams of a skeleton."""

from ctypes import c_int64, c_void_p

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.native import address, bind, checked
from neardup.core.text.consonants import consonants

HASH, NUMBER = np.dtype(np.uint64), np.dtype(np.uint32)

_set = c_void_p, c_int64
_count_shared = bind("nd_count_shared_hashes", *_set, *_set)
_count_shared_apart = bind("nd_count_shared_apart", *_set, *_set, *_set)
_skeleton_grams = bind("nd_skeleton_grams", *_set, *_set, c_int64, c_void_p, c_void_p)


def count_shared(few: Hashes, many: Hashes) -> int:
    few, many = map(np.ascontiguousarray, (few, many))
    return checked(_count_shared(address(few, HASH), len(few), address(many, HASH), len(many)))


def count_shared_apart(a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32], apart: npt.NDArray[np.uint32]) -> int:
    a, b, apart = map(np.ascontiguousarray, (a, b, apart))
    sets = address(a, NUMBER), len(a), address(b, NUMBER), len(b), address(apart, NUMBER), len(apart)
    return checked(_count_shared_apart(*sets))


def skeleton_grams(normalised: bytes, size: int) -> npt.NDArray[np.uint32]:
    classes, length = consonants(), len(normalised)
    text = np.frombuffer(normalised, np.uint8)
    entries, grams = np.empty(length, np.uint8), np.empty(length, np.uint32)
    arguments = address(text, np.uint8), length, address(classes, np.uint8), len(classes), size
    count = checked(_skeleton_grams(*arguments, address(entries, np.uint8), address(grams, NUMBER)))
    return grams[:count]
