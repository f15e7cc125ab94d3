"""What the passage index must find, from all stories in memory, and hypothesis strategies of stories."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from hypothesis import strategies as st
from neardup.core.fingerprint.word_hashes import MIN_SHARED
from neardup.index.passages.index import Found
from neardup.index.passages.postings import PassageHashes

Stories = Mapping[int, PassageHashes]
Answer = tuple[dict[int, int], list[int]]

# Few hashes, so that stories share them, at both ends of the range and next to each other in a bucket.
HASHES = [0, 1, 2, 0xFFFF, 0x10000, 0x10001, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFF00, 0xFFFFFFFE, 0xFFFFFFFF]
hash_sets = st.sets(st.sampled_from(HASHES) | st.integers(0, 2**32 - 1), max_size=10).map(
    lambda hashes: np.array(sorted(hashes), np.uint32)
)


def stories_from(first: int, max_size: int = 30) -> st.SearchStrategy[dict[int, PassageHashes]]:
    """Stories numbered from `first` on, with gaps."""
    rows = st.lists(st.tuples(st.integers(1, 3), hash_sets), max_size=max_size)

    def numbered(rows: list[tuple[int, PassageHashes]]) -> dict[int, PassageHashes]:
        steps = np.cumsum([step for step, _ in rows], dtype=int).tolist()
        return {first - 1 + number: hashes for number, (_, hashes) in zip(steps, rows, strict=True)}

    return rows.map(numbered)


def holders(stories: Stories) -> dict[int, list[int]]:
    """For each hash the stories that have it, ascending."""
    found: dict[int, list[int]] = defaultdict(list)
    for number, hashes in sorted(stories.items()):
        for passage_hash in hashes.tolist():
            found[passage_hash].append(number)
    return found


def answers(stories: Stories, probes: Sequence[PassageHashes], common: int) -> list[Answer]:
    """For each probe: how many uncommon hashes each story shares with it, at least MIN_SHARED; and how many stories
    hold each of its hashes.
    """
    holding, found = holders(stories), list[Answer]()
    for probe in probes:
        numbers = {passage_hash: holding.get(passage_hash, []) for passage_hash in probe.tolist()}
        shared = Counter(number for some in numbers.values() if len(some) <= common for number in some)
        counts = list(map(len, numbers.values()))
        found.append(({number: count for number, count in shared.items() if count >= MIN_SHARED}, counts))
    return found


def pairs(stories: Stories, common: int) -> dict[tuple[int, int], int]:
    """How many uncommon hashes each pair of stories shares, at least MIN_SHARED."""
    shared = Counter[tuple[int, int]]()
    for numbers in holders(stories).values():
        if len(numbers) <= common:
            shared.update((left, right) for left in numbers for right in numbers if left < right)
    return {pair: count for pair, count in shared.items() if count >= MIN_SHARED}


def as_dicts(found: Found) -> Answer:
    """An answer in the form of `answers`; the numbers must ascend."""
    assert (np.diff(found.numbers.astype(int)) > 0).all()
    shared = dict(zip(found.numbers.tolist(), found.shared.tolist(), strict=True))
    return shared, found.holders.tolist()


def without(stories: Stories, dead: Collection[int]) -> Stories:
    """The stories that are not dead."""
    return {number: hashes for number, hashes in stories.items() if number not in dead}
