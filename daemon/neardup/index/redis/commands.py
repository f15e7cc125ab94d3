"""Commands to Redis, and how many keys one of them may take."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

KEYS_PER_COMMAND = 2048  # a millisecond or two of Redis's time

Command = tuple[object, ...]
T = TypeVar("T")


def batches(items: Sequence[T], size: int = KEYS_PER_COMMAND) -> Iterator[Sequence[T]]:
    """The items in order, at most `size` at a time."""
    return (items[start : start + size] for start in range(0, len(items), size))
