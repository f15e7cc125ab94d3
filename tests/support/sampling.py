"""How much the tests try: CHAOS, from the environment, multiplies the faults and examples of a test (default 1)."""

import os
from collections.abc import Sequence
from itertools import product
from math import lcm
from typing import TypeVar

CHAOS = int(os.environ.get("CHAOS", "1"))
EXAMPLES = int(os.environ.get("EXAMPLES", 50 * CHAOS))  # of a law that does not say how many

Case = TypeVar("Case")
Other = TypeVar("Other")


def crossed(cases: Sequence[Case], others: Sequence[Other], each: int = 1) -> list[tuple[Case, Other]]:
    """Pairs of the two, in which every case and every other one comes up at least `each` times.

    `make chaos` tries all pairs.
    """
    if CHAOS > 1:
        return [*product(cases, others)]
    round_length = lcm(len(cases), len(others))  # after which the same pairs would come up again
    return [
        (cases[turn % len(cases)], others[(turn + turn // round_length) % len(others)])
        for turn in range(each * max(len(cases), len(others)))
    ]


def some_of(others: Sequence[Other], number: int, count: int) -> Sequence[Other]:
    """Those of the others with which the case of this number is tried: `count` of them, or all in `make chaos`."""
    if CHAOS > 1 or count >= len(others):
        return others
    return [others[(number + turn * len(others) // count) % len(others)] for turn in range(count)]
