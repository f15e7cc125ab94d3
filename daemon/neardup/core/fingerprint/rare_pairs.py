"""The hashes by which a rewritten story is found: of pairs of rare words that stand close together.

Who rewrites a story keeps many of its rarer words: names, things and places.  A single one of them stands in too many
stories to nominate any; two of them within NEARBY words seldom do.  The order of the two does not count.  The hashes
of a story stand among its passage hashes, and are a bottom-k sketch (Broder, SEQUENCES 1997) of its pairs, so they take
46 bytes a story at most.
"""

import numpy as np

from neardup.core.fingerprint.common_words import find_rare
from neardup.core.fingerprint.word_hashes import Hashes, PassageHashes, make_passage_hashes, mix
from neardup.core.native import fingerprint as native
from neardup.core.native import in_c
from neardup.core.sets import find_distinct

PAIRS = 14  # hashes of a story, if it has so many pairs
NEARBY = 4  # words from one of a pair to the other


@in_c(native.hash_rare_pairs)
def hash_rare_pairs(words: Hashes) -> PassageHashes:
    """Word hashes (n,), in reading order -> the hashes of the least rare pairs, in no order.

    A text whose language has no list of common words has none: its most frequent words would make the pairs.
    """
    places = np.flatnonzero(find_rare(words))
    rare, found = words[places], [words[:0]]
    for ahead in range(1, NEARBY + 1):
        is_pair = (places[ahead:] - places[:-ahead] <= NEARBY) & (rare[ahead:] != rare[:-ahead])
        found.append(mix(rare[:-ahead][is_pair] + rare[ahead:][is_pair]))
    return make_passage_hashes(find_distinct(np.concatenate(found))[:PAIRS])
