"""What two stories share apart from common passages: whether they are copies, or only bear the same disclaimer."""

import numpy as np

from neardup.core.fingerprint.minhash import distinct, word_pairs
from neardup.core.fingerprint.passage_hashes import WINDOW, PassageHashes
from neardup.core.verify.copied_words import words_in_common
from neardup.core.verify.sets import count_shared
from neardup.core.verify.shingled import Shingled

# The least share of a story's word pairs that are apart from common passages; a story with less is a popular text.
LEAST_OWN = 0.1


def own_containment(story: Shingled, other: Shingled, common: PassageHashes) -> float | None:
    """The share of a story's shingles apart from common passages that another story has, 0 to 1.

    `common` (n,) are the hashes of common passages, ascending.  Words up to a window from a common passage may belong
    to it, so they do not count.  None for a story that is little more than common passages.
    """
    words = story.words
    places, never = np.arange(len(words)), len(words) + WINDOW
    is_common = words_in_common(words, common)
    before = np.maximum.accumulate(np.where(is_common, places, -never))
    after = np.minimum.accumulate(np.where(is_common, places, never)[::-1])[::-1]
    is_own = (places - before > WINDOW) & (after - places > WINDOW)
    own = distinct(word_pairs(words)[is_own[:-1] & is_own[1:]])
    if len(own) <= LEAST_OWN * len(story.shingles):
        return None
    return count_shared(own, other.shingles) / len(own)
