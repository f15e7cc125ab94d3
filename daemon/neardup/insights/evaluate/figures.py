"""Shares and their confidence intervals."""

from dataclasses import dataclass
from math import sqrt
from typing import Any

Z = 1.959964  # the standard normal's 97.5 % point: an interval that covers 95 %
ALL = "all"  # the row of all languages together

Facts = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Share:
    """`found` of `n`, and the ends of its interval; `share` is None for n = 0."""

    found: int
    n: int
    share: float | None
    low: float
    high: float


def share(found: int, n: int) -> Share:
    """A share with its 95 % interval by Wilson's score (JASA 22, 1927).

    (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n); unlike p ± z sqrt(p (1 - p) / n), it is not
    empty at p = 0 and p = 1, so it shows that a few samples prove little.
    """
    if n == 0:
        return Share(0, 0, None, 0.0, 1.0)
    p = found / n
    middle = p + Z * Z / (2 * n)
    reach = Z * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    low = 0.0 if found == 0 else (middle - reach) / scale
    high = 1.0 if found == n else (middle + reach) / scale
    return Share(found, n, p, low, high)
