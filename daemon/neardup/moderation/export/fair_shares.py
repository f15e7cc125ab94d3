"""Dividing a limited number of places among groups, so that no group keeps another from being shown."""

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")


def fair_shares(sizes: Mapping[T, int], places: int) -> Counter[T]:
    """The number of places of each group, in the order of `sizes`, in all at most `places`.

    No group gets a place that it cannot fill while another still needs it, and a group that does not get all it needs
    has at most one place less than any other (max-min fairness: Bertsekas and Gallager, Data Networks, 1992, 6.5.2).
    """
    granted: Counter[T] = Counter()
    smallest_first = sorted(sizes, key=lambda group: sizes[group])
    for n, group in enumerate(smallest_first):
        granted[group] = min(sizes[group], places // (len(sizes) - n))
        places -= granted[group]
    return Counter({group: granted[group] for group in sizes})
