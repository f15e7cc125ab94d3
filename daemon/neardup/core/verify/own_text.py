"""What two stories share apart from common passages: whether they are copies, or only bear the same disclaimer.

Only the common passages that both stories hold decide on a pair.  So a passage that becomes common changes nothing but
the pairs among its holders.
"""

from collections.abc import Sequence

import numpy as np

from neardup.core.fingerprint.word_hashes import MIN_SHARED, WINDOW, Hashes, PassageHashes, hash_word_pairs
from neardup.core.native import comparison as native
from neardup.core.native import in_c
from neardup.core.sets import are_among_ascending, count_shared, find_distinct
from neardup.core.verify.alignment import Mask, mask_common
from neardup.core.verify.text import Text, list_distinct_texts

# A story with at most this share of its shingles apart from common passages is a popular text, judged as a whole.
LEAST_OWN = 0.1


def list_common_in_both(pairs: Sequence[tuple[Text, Text]], common: PassageHashes) -> list[PassageHashes]:
    """The hashes of common passages, (n,) ascending -> those that both texts of each pair hold, ascending."""
    if not len(common):
        return [common] * len(pairs)
    texts, places = list_distinct_texts(pairs)
    held = [text.passages[are_among_ascending(text.passages, common)] for text in texts]
    return [held[a][are_among_ascending(held[a], held[b])] for a, b, _ in places.tolist()]


def share_passages(a: Text, b: Text, common: PassageHashes) -> bool:
    """Whether passages nominate two texts: they share MIN_SHARED passage hashes that are not common."""
    shared = np.intersect1d(a.passages, b.passages, assume_unique=True)
    return bool(np.count_nonzero(~are_among_ascending(shared, common)) >= MIN_SHARED)


def measure_own_containment(story: Text, other: Text, common: PassageHashes) -> float | None:
    """The share of a story's shingles apart from common passages that another story has, 0 to 1.

    `common` (n,) are the hashes of the common passages that both hold, ascending.  None for a story that is little more
    than common passages.
    """
    own = find_distinct(hash_own_pairs(story.word_hashes, common))
    return None if len(own) <= LEAST_OWN * len(story.shingles) else count_shared(own, other.shingles) / len(own)


def hash_own_pairs(words: Hashes, common: PassageHashes) -> Hashes:
    """Word hashes (n,) -> (m,) the hashes of the pairs of adjacent words that are apart from common passages."""
    is_own = are_own(words, common)
    return hash_word_pairs(words)[is_own[:-1] & is_own[1:]]


@in_c(native.are_own)
def are_own(words: Hashes, common: PassageHashes) -> Mask:
    """Which words (n,) of a text are apart from common passages, whose hashes ascend.

    Words up to a window from a common passage may belong to it, so they do not count.
    """
    places, never = np.arange(len(words)), len(words) + WINDOW  # farther than a window from every word
    is_common = mask_common(words, common)
    before = np.maximum.accumulate(np.where(is_common, places, -never))
    after = np.minimum.accumulate(np.where(is_common, places, never)[::-1])[::-1]
    return np.asarray((places - before > WINDOW) & (after - places > WINDOW))
