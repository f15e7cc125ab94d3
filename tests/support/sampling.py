"""How much the tests try: CHAOS, from the environment, multiplies the faults and examples of a test (default 1)."""

import os
import random
from collections.abc import Sequence
from itertools import product
from math import ceil, lcm
from typing import TypeVar

CHAOS = int(os.environ.get("CHAOS", "1"))


def count_examples(examples: int) -> int:
    """How many of the examples of a law are drawn: two fifths, but all of them in `make chaos`."""
    return examples if CHAOS > 1 else ceil(examples * 2 / 5)


EXAMPLES = int(os.environ.get("EXAMPLES", count_examples(50 * CHAOS)))  # of a law that does not say how many

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


def sample_cases(cases: Sequence[Case], most: int) -> Sequence[Case]:
    """At most this many of the cases, others in each run, or all of them in `make chaos`."""
    return cases if CHAOS > 1 else random.Random().sample(cases, min(most, len(cases)))
