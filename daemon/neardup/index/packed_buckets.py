"""What the packed indexes do alike, wherever they keep their buckets.

A bucket is a string of story numbers, 4 bytes each, the least significant first; it is appended to and
read whole.  The version of a story that was edited or removed stays in its buckets: the ledger no longer
knows its number.  A bucket is known by an integer, `column << 16 | value`: the columns below NEAR are the
bands of the signature, those from NEAR on the blocks of the SimHash (see core.banding), and a value has so
many bits that a bucket of the language holds some hundred stories.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BAND_BITS, MAX_SKETCH_BANDS, SHARED_BLOCKS, Banding, block_values, narrowed
from neardup.core.candidates.shared_buckets import shared_by
from neardup.core.fingerprint.minhash import SignatureRows, signature_rows
from neardup.core.verify.scores import HashRows, hash_rows
from neardup.errors import Fatal
from neardup.index.marks import read_by_name
from neardup.index.protocol import Found
from neardup.records import Banded, Change, Language

NUMBER = np.dtype("<u4")
NUMBER_BYTES = 4
NEAR = MAX_SKETCH_BANDS
FEWEST_BITS, START_BITS, MOST_BITS = 13, 14, 16
ROOMY = 64  # stories a bucket, at least, where values are chosen that wide
CROWDED = 512

Bits = Mapping[Language, int]
Buckets = npt.NDArray[np.int64]


def bits_for(sizes: Mapping[Language, int], languages: Iterable[Language]) -> dict[Language, int]:
    """The width of the values for languages of such sizes; START_BITS where nothing is known."""
    known = {language: (n // ROOMY).bit_length() - 1 for language, n in sizes.items() if n}
    return {
        language: min(max(known[language], FEWEST_BITS), MOST_BITS) if language in known else START_BITS
        for language in languages
    }


def recorded(record: str | None, languages: Iterable[Language]) -> dict[Language, int]:
    """The widths on record; the least for a language that was added since, START_BITS where nothing is on record."""
    if record is None:
        return dict.fromkeys(languages, START_BITS)
    return dict.fromkeys(languages, FEWEST_BITS) | read_by_name(record)


def crowded(sizes: Mapping[Language, int], bits: Bits) -> str | None:
    """What to do about a language that has outgrown its buckets, in one line, or None."""
    found = [language for language, n in sizes.items() if n > CROWDED << bits[language] and bits[language] < MOST_BITS]
    if not found:
        return None
    return f"{', '.join(found)}: buckets hold over {CROWDED} stories each; `neardup reindex` spreads them over more"


def near_buckets(simhashes: HashRows, banding: Banding, bits: int) -> Buckets:
    """(n, 2) SimHashes -> (n, hamming + 2): the buckets that hold them."""
    values = block_values(simhashes, banding.hamming, bits)
    return np.asarray(values | (NEAR + np.arange(values.shape[1])) << BAND_BITS)


def sketch_buckets(signatures: SignatureRows, banding: Banding, bits: int) -> Buckets:
    """(n, 64) signatures -> (n, bands): the buckets that hold them."""
    values = narrowed(signatures, banding.bands, bits)
    return np.asarray(values | np.arange(values.shape[1]) << BAND_BITS)


def name(language: Language, bucket: int) -> str:
    """A bucket as operators know it: `sketch:HINDI:31:0AF1` of signatures, `HINDI:0:28D3` of SimHashes."""
    column, value = bucket >> BAND_BITS, bucket & (1 << BAND_BITS) - 1
    if column < NEAR:
        return f"sketch:{language}:{column}:{value:04X}"
    return f"{language}:{column - NEAR}:{value:04X}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What n stories of one language ask for: `buckets`, distinct and ascending, and the places of theirs among them.

    `near` (n, hamming + 2), `sketched` (those that are `signed`, bands); `signed` (n,).
    """

    language: Language
    buckets: Buckets
    near: Buckets
    sketched: Buckets
    signed: npt.NDArray[np.bool_]


def asked(language: Language, stories: Sequence[Banded], banding: Banding, bits: int, *, blocks: bool = True) -> Asked:
    """The buckets that these stories of one language ask for, or without `blocks` those of the signature alone."""
    signed = [story.signature for story in stories if story.signature is not None]
    near = near_buckets(hash_rows([story.simhash for story in stories]), banding, bits)[:, : None if blocks else 0]
    sketched = sketch_buckets(signature_rows(signed), banding, bits)
    buckets, places = np.unique(np.concatenate((near.ravel(), sketched.ravel())), return_inverse=True)
    return Asked(
        language,
        buckets,
        places[: near.size].reshape(near.shape),
        places[near.size :].reshape(sketched.shape),
        np.array([story.signature is not None for story in stories], np.bool_),
    )


def found(asked: Asked, values: Sequence[bytes], lengths: Sequence[int], banding: Banding) -> list[Found]:
    """What each story finds, where `values` are what its buckets hold, and `lengths` how long they are.

    Of a bucket with more than max_bucket members `values` has the last of them only.
    """
    most = banding.max_bucket
    sizes = np.array(lengths, np.int64) // NUMBER_BYTES
    edges = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(np.minimum(sizes, most), out=edges[1:])
    members = np.frombuffer(bytearray().join(values), NUMBER)
    near, near_ends = shared_by(members, edges, asked.near, SHARED_BLOCKS)
    sketched, sketched_ends = shared_by(members, edges, asked.sketched, banding.shared)
    each, nth = [], 0
    for story, is_signed in enumerate(asked.signed.tolist()):
        numbers, places = near[near_ends[story] : near_ends[story + 1]], asked.near[story]
        if is_signed:
            also = sketched[sketched_ends[nth] : sketched_ends[nth + 1]]
            numbers = np.union1d(numbers, also) if len(numbers) else also
            places = np.concatenate((places, asked.sketched[nth]))
            nth += 1
        full = places[sizes[places] > most].tolist()
        each.append(Found(set(), numbers, {name(asked.language, int(asked.buckets[n])): int(sizes[n]) for n in full}))
    return each


class Entering(NamedTuple):
    """What is to be appended: the buckets, ascending, how many numbers go to each, and these, bucket by bucket."""

    buckets: Buckets
    counts: Buckets
    members: bytes

    def each(self) -> Iterator[tuple[int, bytes]]:
        """Each bucket with its own."""
        begin = 0
        for bucket, end in zip(self.buckets.tolist(), (np.cumsum(self.counts) * NUMBER_BYTES).tolist(), strict=True):
            yield bucket, self.members[begin:end]
            begin = end

    def parts(self, size: int) -> Iterator["Entering"]:
        """The same, so many buckets at a time."""
        ends = np.cumsum(self.counts, dtype=np.int64) * NUMBER_BYTES
        for start in range(0, len(self.buckets), size):
            counts = self.counts[start : start + size]
            end = int(ends[start + len(counts) - 1])
            begin = end - int(counts.sum()) * NUMBER_BYTES
            yield Entering(self.buckets[start : start + size], counts, self.members[begin:end])


NOTHING = Entering(np.empty(0, np.int64), np.empty(0, np.int64), b"")


def entering(
    language: Language, changes: Sequence[Change], banding: Banding, bits: int, *, blocks: bool = True
) -> Entering:
    """What these changes put into the buckets of a language.  Raises Fatal for a number of more than 32 bits."""
    new = [(change.number, change.new) for change in changes if change.new and change.new.language == language]
    if not new:
        return NOTHING
    for number, _ in new:
        if number >> 8 * NUMBER_BYTES:
            raise Fatal(f"story number {number} has more than 32 bits: an index holds no more versions of stories")
    wants = asked(language, [story for _, story in new], banding, bits, blocks=blocks)
    numbers = np.array([number for number, _ in new], NUMBER)
    places = np.concatenate((wants.near.ravel(), wants.sketched.ravel()))
    each = (numbers.repeat(wants.near.shape[1]), numbers[wants.signed].repeat(wants.sketched.shape[1]))
    members = np.concatenate(each)[np.argsort(places, kind="stable")].tobytes()
    return Entering(wants.buckets, np.bincount(places, minlength=len(wants.buckets)), members)


def gained(changes: Sequence[Change]) -> dict[Language, int]:
    """By how many stories each language grows."""
    gained: Counter[Language] = Counter()
    gained.update(change.new.language for change in changes if change.new)
    gained.subtract(change.old.language for change in changes if change.old)
    return {language: n for language, n in gained.items() if n}


def by_language(probes: Sequence[Banded]) -> dict[Language, list[int]]:
    """The places of each language's stories."""
    places: dict[Language, list[int]] = {}
    for place, probe in enumerate(probes):
        places.setdefault(probe.language, []).append(place)
    return places
