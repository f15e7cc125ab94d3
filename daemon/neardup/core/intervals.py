"""Shares and their confidence intervals."""

from math import sqrt

from msgspec import Struct

Z = 1.959964  # the standard normal's 97.5 % point: an interval that covers 95 %


class Share(Struct, frozen=True):
    """`found`, a count or a sum of shares, of `n`, and the ends of its interval; `share` is None for n = 0."""

    found: float
    n: int
    share: float | None
    low: float
    high: float


def estimate_share(found: float, n: int, z: float = Z) -> Share:
    """A share with its interval by Wilson's score (JASA 22, 1927), `z` standard deviations wide to each side.

    (p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n); unlike p ± z sqrt(p (1 - p) / n), it is not
    empty at p = 0 and p = 1, so it shows that a few samples prove little.
    """
    if n == 0:
        return Share(0, 0, None, 0.0, 1.0)
    p = found / n
    middle = p + z * z / (2 * n)
    reach = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if found == 0 else (middle - reach) / scale
    high = 1.0 if found == n else (middle + reach) / scale
    return Share(found, n, p, low, high)
