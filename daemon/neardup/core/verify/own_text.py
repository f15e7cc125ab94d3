"""What two stories share apart from common passages: whether they are copies, or only bear the same disclaimer."""

from collections.abc import Sequence

import numpy as np

from neardup.core.fingerprint.minhash import distinct
from neardup.core.fingerprint.word_hashes import WINDOW, Hashes, PassageHashes, word_pairs
from neardup.core.native import alignment as native
from neardup.core.native import in_c
from neardup.core.verify.alignment import words_in_common
from neardup.core.verify.sets import count_shared_pairs
from neardup.core.verify.text import Text, distinct_texts

# The least share of a story's word pairs that are apart from common passages; a story with less is a popular text.
LEAST_OWN = 0.1
NO_WORDS: Hashes = np.empty(0, np.uint64)


def own_containments(pairs: Sequence[tuple[Text, Text]], common: PassageHashes) -> list[float | None]:
    """The share of a story's shingles apart from common passages that another story has, 0 to 1: of each such pair.

    `common` (n,) are the hashes of common passages, ascending.  None for a story that is little more than common
    passages.
    """
    if not pairs:
        return []
    texts, places = distinct_texts(pairs)
    stories = set(places[:, 0].tolist())
    own = [distinct(own_pairs(text.word_hashes, common)) if n in stories else NO_WORDS for n, text in enumerate(texts)]
    shared = count_shared_pairs(
        [*own, *(text.shingles for text in texts)], places + np.array([0, len(texts), 0], np.int32)
    )
    return [
        None if len(own[n]) <= LEAST_OWN * len(texts[n].shingles) else count / len(own[n])
        for n, count in zip(places[:, 0].tolist(), shared.tolist(), strict=True)
    ]


@in_c(native.own_pairs)
def own_pairs(words: Hashes, common: PassageHashes) -> Hashes:
    """Word hashes (n,) -> (m,) the hashes of the pairs of adjacent words that are apart from common passages.

    Words up to a window from a common passage may belong to it, so they do not count.
    """
    places, never = np.arange(len(words)), len(words) + WINDOW
    is_common = words_in_common(words, common)
    before = np.maximum.accumulate(np.where(is_common, places, -never))
    after = np.minimum.accumulate(np.where(is_common, places, never)[::-1])[::-1]
    is_own = (places - before > WINDOW) & (after - places > WINDOW)
    return word_pairs(words)[is_own[:-1] & is_own[1:]]
