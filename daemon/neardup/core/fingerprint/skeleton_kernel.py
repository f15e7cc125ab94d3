"""The skeleton hashes of a story as a compiled function, in a quarter of the time of `skeleton.skeleton_hashes`."""

import numpy as np

from neardup.core.fingerprint import skeleton, word_hashes
from neardup.core.fingerprint.passage_hashes import PassageHashes
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.fingerprint.xxh3 import U64, Bytes
from neardup.core.jit import compiled
from neardup.core.text.consonants import CLASS_BITS, NO_CONSONANT, SCRIPTS, Classes

MAX_HASH = U64(2**64 - 1)
SPARE = 3  # times as many hashes as are wanted are expected below the limit, so that there are nearly always enough

mixed = compiled(word_hashes.mixed)
sample_size = compiled(skeleton.sample_size)


@compiled
def with_skeleton(passages: PassageHashes, text: Bytes, table: Classes, gram: int) -> PassageHashes:
    """The passage hashes of a story with those of its skeleton: distinct, ascending.

    `text` is the normalised text in UTF-8, `table` that of `consonants`, and `gram` the classes of a gram.
    """
    grams = _grams(_classes(text, table), gram)
    hashes = np.empty(sample_size(len(grams)), np.uint32)
    size = 0
    for one in _least(grams, len(hashes)):
        hashes[size] = mixed(one) >> U64(32)
        size += 1
    return np.unique(np.concatenate((passages, hashes[:size])))


@compiled
def _classes(text: Bytes, table: Classes) -> Classes:
    """The classes of a text's skeleton."""
    entries, size, place, last = np.empty(len(text), np.uint8), 0, 0, len(table) - 1
    while place < len(text):
        code, length = int(text[place]), 1
        if code >= 0xF0:
            code, length = last, 4
        elif code >= 0xE0:
            code, length = (code & 0x0F) << 12 | int(text[place + 1] & 0x3F) << 6 | int(text[place + 2] & 0x3F), 3
        elif code >= 0xC0:
            code, length = (code & 0x1F) << 6 | int(text[place + 1] & 0x3F), 2
        place += length
        entries[size] = entry = table[min(code, last)]
        size += entry != NO_CONSONANT  # without a branch, which would be mispredicted at every other letter
    counts = np.zeros(SCRIPTS, np.int64)
    for one in range(SCRIPTS):
        for entry in entries[:size]:  # a loop for each script, which the compiler vectorises
            counts[one] += entry >> CLASS_BITS == one
    script, kept, before = counts.argmax(), 0, NO_CONSONANT
    for entry in entries[:size]:
        if entry >> CLASS_BITS == script:
            entries[kept] = entry & (1 << CLASS_BITS) - 1
            kept += entry != before
            before = entry
    return entries[:kept]


@compiled
def _grams(classes: Classes, size: int) -> Hashes:
    grams = np.empty(max(len(classes) - size + 1, 0), np.uint64)
    mask, packed = U64((1 << CLASS_BITS * size) - 1), U64(0)
    for place in range(len(classes)):
        packed = (packed << U64(CLASS_BITS) | U64(classes[place])) & mask
        if place >= size - 1:
            grams[place - size + 1] = packed
    for place in range(len(grams)):  # a loop of its own, which the compiler vectorises
        grams[place] = mixed(grams[place])
    return grams


@compiled
def _least(grams: Hashes, wanted: int) -> Hashes:
    """The least `wanted` distinct hashes, ascending; all if there are fewer."""
    if len(grams) > SPARE * wanted:
        limit, low, size = MAX_HASH // U64(len(grams)) * U64(SPARE * wanted), np.empty(len(grams), np.uint64), 0
        for gram in grams:
            if gram < limit:
                low[size] = gram
                size += 1
        least = np.unique(low[:size])
        if len(least) >= wanted:
            return least[:wanted]
    return np.unique(grams)[:wanted]
