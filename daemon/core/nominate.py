"""From what the bands brought up, the pairs worth a verifier's time."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from daemon.core.verify import hamming, hash_rows
from daemon.records import Banded, Language


@dataclass(frozen=True, slots=True)
class Nominee:
    """One story of a batch with its matches within the distance, best first; `capped` were left out."""

    story_id: int
    matches: tuple[int, ...]
    capped: int


def nominate(story_id: int, simhash: bytes, others: Mapping[int, bytes], max_hamming: int, max_matches: int) -> Nominee:
    """Keep of `others` (id -> SimHash) the closest `max_matches` within `max_hamming`."""
    if not others:
        return Nominee(story_id, (), 0)
    ids = np.fromiter(others, np.int64, len(others))
    bits = hamming(hash_rows([simhash]), hash_rows(list(others.values())))
    near = bits <= max_hamming
    order = np.lexsort((ids[near], bits[near]))
    best = ids[near][order]
    return Nominee(story_id, tuple(best[:max_matches].tolist()), max(len(best) - max_matches, 0))


def together(batch: Sequence[tuple[int, Banded]], distances: Mapping[Language, int]) -> Iterable[tuple[int, int]]:
    """The pairs inside one batch that are of one language and within its distance."""
    by_language: dict[Language, list[tuple[int, bytes]]] = {}
    for story_id, banded in batch:
        by_language.setdefault(banded.language, []).append((story_id, banded.simhash))
    for language, members in by_language.items():
        rows = hash_rows([simhash for _, simhash in members])
        near = hamming(rows[:, None], rows[None]) <= distances[language]
        for i, j in np.argwhere(np.triu(near, 1)).tolist():
            yield members[i][0], members[j][0]
