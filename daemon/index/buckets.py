"""What the indexes do alike: pack numbers, gather what was read of the buckets, put the layout on record."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Generic, TypeVar

import numpy as np

from daemon.core.banding import Banding, shared_by
from daemon.index import Bandings, Found
from daemon.records import Language

NUMBER_BYTES = 4
G = TypeVar("G")
S = TypeVar("S")
B = TypeVar("B")
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Read(Generic[B, M]):
    """The buckets of one tier that a lookup has read; an empty one is not there.

    `members` are those that are looked at; `capped` gives name and size of a bucket that has more.
    """

    members: Mapping[B, M]
    capped: Mapping[B, tuple[str, int]]


def packed(number: int) -> bytes:
    """A story number in 4 bytes, the least significant first.  Raises OverflowError for one of more than 32 bits."""
    return number.to_bytes(NUMBER_BYTES, "little")


def found(
    asked: Sequence[tuple[tuple[G, ...], tuple[S, ...], Banding]], ids: Read[G, set[int]], numbers: Read[S, bytes]
) -> list[Found]:
    """What each story finds in the buckets of its SimHash and, packed, in those of its signature.

    Stories that ask for the same buckets, as copies of a template do, share one Found.
    """
    each = {one: _found(*one, ids, numbers) for one in set(asked)}
    return [each[one] for one in asked]


def _found(
    groups: Sequence[G], sketches: Sequence[S], banding: Banding, ids: Read[G, set[int]], numbers: Read[S, bytes]
) -> Found:
    joined = b"".join(map(numbers.members.get, sketches, repeat(b"")))
    return Found(
        set().union(*(ids.members[group] for group in groups if group in ids.members)),
        shared_by(np.frombuffer(joined, "<u4"), banding.shared),
        dict([ids.capped[group] for group in groups if group in ids.capped])
        | dict([numbers.capped[sketch] for sketch in sketches if sketch in numbers.capped]),
    )


def layout(bandings: Bandings, setting: Callable[[Banding], int]) -> str:
    """A setting that decides where a story stands, for the record: one number if all languages agree."""
    values = [str(setting(bandings[language])) for language in Language]
    return values[0] if len(set(values)) == 1 else ",".join(values)
