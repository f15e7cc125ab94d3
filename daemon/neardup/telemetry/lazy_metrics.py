"""Metrics that prometheus_client makes when it is loaded, since its import takes longer than a short command may.

Until then what happens to them is kept, and done as soon as it is loaded: by what serves or reads the metrics, or once
so much is kept that the command is no short one.
"""

import collections
import sys
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from threading import RLock
from typing import Any

LIBRARY = "prometheus_client"
MOST_KEPT = 1000

_declared: list["Metric"] = []
_kept: list[Callable[[], object]] = []
_lock = RLock()  # of the two


def call_later(happen: Callable[[], object]) -> None:
    """Call `happen`, now if prometheus_client is loaded, or else when it is."""
    if LIBRARY in sys.modules:
        if _kept or not _declared[0].is_made:
            register()
        happen()
        return
    with _lock:
        _kept.append(happen)
    if len(_kept) > MOST_KEPT:
        register()


def register() -> list[Any]:
    """Load prometheus_client, make all metrics, do what was kept, and return the metrics."""
    with _lock:
        made = [metric.made for metric in _declared]
        kept = _kept[:]
        _kept.clear()
        for happen in kept:
            happen()
        return made


class Series:
    """What has a value: a metric without labels, or one series of a metric with labels."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    @cached_property
    def made(self) -> Any:
        """The same of prometheus_client, which is loaded."""
        return self._make()

    @property
    def is_made(self) -> bool:
        """Whether prometheus_client has made it."""
        return "made" in vars(self)

    def inc(self, amount: float = 1) -> None:
        """As the methods below, as in prometheus_client."""
        call_later(lambda: self.made.inc(amount))

    def set(self, value: float) -> None:
        call_later(lambda: self.made.set(value))

    def set_to_current_time(self) -> None:
        self.set(time.time())

    def observe(self, amount: float) -> None:
        call_later(lambda: self.made.observe(amount))

    @contextmanager
    def time(self) -> Iterator[None]:
        """Observe how many seconds the context lasts."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.observe(time.perf_counter() - began)

    def __getattr__(self, name: str) -> Any:
        """Anything else is asked of prometheus_client."""
        register()
        return getattr(self.made, name)


class Metric(Series):
    """A metric, by the name of its class in prometheus_client and what that is made of."""

    def __init__(self, kind: str, *declaration: Any, **options: Any) -> None:
        def make() -> Any:
            import prometheus_client  # noqa: PLC0415 - see above

            return getattr(prometheus_client, kind)(*declaration, **options)

        super().__init__(make)
        _declared.append(self)

    def labels(self, *values: object) -> Any:
        """One series, which is shown from now on."""
        if self.is_made:
            return self.made.labels(*values)
        series = Series(lambda: self.made.labels(*values))
        call_later(lambda: series.made)
        return series

    def clear(self) -> None:
        call_later(lambda: self.made.clear())  # noqa: PLW0108 - not made before then


def observe_all(histogram: Any, amounts: Sequence[float]) -> None:
    """Observe many amounts in a histogram without labels, or one series; it takes little longer than to observe one."""

    def observe() -> None:
        made = histogram.made if isinstance(histogram, Series) else histogram
        bounds = made._upper_bounds  # noqa: SLF001 - the library observes one amount at a time
        for place, count in collections.Counter(bisect_left(bounds, amount) for amount in amounts).items():
            made._buckets[place].inc(count)  # noqa: SLF001 - likewise
        made._sum.inc(sum(amounts))  # noqa: SLF001 - likewise

    call_later(observe)


Counter, Gauge, Histogram = (partial(Metric, kind) for kind in ("Counter", "Gauge", "Histogram"))
