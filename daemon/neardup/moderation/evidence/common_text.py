"""Which words of a story stand in common passages, so that its report can tell them apart."""

import sqlite3

import numpy as np
import numpy.typing as npt

from neardup.core.fingerprint.word_hashes import GRAM, Hashes, sample_grams
from neardup.ledger import passages
from neardup.records import Language

Mask = npt.NDArray[np.bool_]  # (words,)


def common_text(db: sqlite3.Connection, language: Language, words: Hashes) -> Mask:
    """Word hashes (n,) of a story -> (n,) which words stand in common passages of its language.

    A common passage reaches from one of its samples to the next.  A sample alone is a phrase that many stories use.
    """
    hashes, places = sample_grams(words)
    found = np.zeros(len(words), bool)
    is_common = np.isin(hashes, passages.common_among(db, language, np.unique(hashes)))
    for n in np.flatnonzero(is_common[1:] & is_common[:-1]).tolist():
        found[places[n] : places[n + 1] + GRAM] = True
    return found
