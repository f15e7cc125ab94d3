"""Winnowing as a compiled function, for the kernel of fingerprints."""

import numpy as np

from neardup.core.fingerprint import word_hashes
from neardup.core.fingerprint.passage_hashes import PassageHashes, Places
from neardup.core.fingerprint.word_hashes import Hashes
from neardup.core.jit import compiled

mixed = compiled(word_hashes.mixed)


def places_of_samples(grams: Hashes, window: int) -> Places:
    """The places of the grams that are sampled, ascending, as in `passage_hashes.sampled`."""
    places = np.empty(len(grams), np.intp)
    window = min(window, len(grams))
    size, least = 0, -1
    for end in range(window - 1, len(grams)):
        begin = end - window + 1
        if least < begin:
            least = begin
            for place in range(begin + 1, end + 1):
                if grams[place] <= grams[least]:
                    least = place
        elif grams[end] <= grams[least]:
            least = end
        else:
            continue
        places[size] = least
        size += 1
    return places[:size]


_places_of_samples = compiled(places_of_samples)


@compiled
def winnowed(pairs: Hashes, window: int) -> PassageHashes:
    """The passage hashes of a story by its shingles in text order, see `passage_hashes.passage_hashes`."""
    if len(pairs) < 3:
        return np.empty(0, np.uint32)
    grams = mixed(mixed(pairs[:-2]) + pairs[2:])
    return np.unique((mixed(grams[_places_of_samples(grams, window)]) >> np.uint64(32)).astype(np.uint32))
