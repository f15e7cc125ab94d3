"""Packed buckets: what an index holds in them, wherever it stores them, and how they are read, added to and built.

A bucket is a string of story numbers of 4 little-endian bytes each.  It is appended to and read whole.  When a story
is edited or removed, the number of its former version stays in its buckets: the ledger no longer knows it.

A bucket is identified by an integer, `column << 16 | value`.  The columns below FIRST_BLOCK are the bands of the
signature, those from FIRST_BLOCK on the blocks of the SimHash (see neardup.core.candidates.banding).  A language's
values have as many bits as it takes for a bucket to hold some hundred stories.

An index is built from all stories at once, so that each bucket is written once and whole.  The stories are written to
scratch files by language and column, and read back one column at a time: memory holds one column of one language,
however many stories there are.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.candidates.all_pairs import find_shared
from neardup.core.candidates.banding import (
    BAND_BITS,
    MAX_SIGNATURE_BANDS,
    SHARED_BLOCKS,
    Banding,
    Values,
    hash_bands,
    hash_blocks,
)
from neardup.core.fingerprint.minhash import SignatureRows, stack_signatures
from neardup.core.sets import union
from neardup.errors import Fatal, IndexDamaged
from neardup.index.protocol import Bandings, Bucket, BucketKind, LookupResult, parse_values
from neardup.records import BandedFingerprint, Change, Language

if TYPE_CHECKING:
    from neardup.core.candidates.banding import FingerprintArrays


NUMBER = np.dtype("<u4")
NUMBER_BYTES = 4
FIRST_BLOCK = MAX_SIGNATURE_BANDS
MIN_BITS, DEFAULT_BITS, MAX_BITS = 13, 14, 16
STORIES_PER_BUCKET = 64  # at least, where the width of the values is chosen
OVERFULL = 512  # stories per bucket
STORIES_PER_READ = 128  # that are compared with their buckets, which take some ten megabytes
BLOCKS, BANDS = "blocks", "bands"  # the groups of columns of a spool

Bits = Mapping[Language, int]
Buckets = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]  # (n, 2): SimHashes as two words each


def choose_bits(sizes: Mapping[Language, int], languages: Iterable[Language]) -> dict[Language, int]:
    """The width of each language's values, for so many stories; DEFAULT_BITS where the number is not known."""
    known = {language: (n // STORIES_PER_BUCKET).bit_length() - 1 for language, n in sizes.items() if n}
    return {
        language: min(max(known[language], MIN_BITS), MAX_BITS) if language in known else DEFAULT_BITS
        for language in languages
    }


def parse_bits(record: str | None, languages: Iterable[Language]) -> dict[Language, int]:
    """The widths in a record of `record_by_language`, and MIN_BITS for languages added since; DEFAULT_BITS without.

    Raises IndexDamaged for a record that holds no widths.
    """
    if record is None:
        return dict.fromkeys(languages, DEFAULT_BITS)
    widths = parse_values(record)
    if not widths or not all(MIN_BITS <= width <= MAX_BITS for width in widths.values()):
        raise IndexDamaged(f"the index is damaged: it records widths as {record!r:.40}")
    return dict.fromkeys(languages, MIN_BITS) | widths


def describe_overfull(sizes: Mapping[Language, int], bits: Bits) -> str | None:
    """The languages whose buckets have grown too full, and the remedy, in one line; None if there are none."""
    full = [language for language, n in sizes.items() if n > OVERFULL << bits[language] and bits[language] < MAX_BITS]
    if not full:
        return None
    return f"{', '.join(full)}: buckets hold over {OVERFULL} stories each; `neardup reindex` spreads them over more"


def list_block_buckets(simhashes: Hashes, banding: Banding, bits: int) -> Buckets:
    """(n, 2) SimHashes -> (n, hamming + 2): the buckets of their blocks."""
    values = hash_blocks(simhashes, banding.hamming, bits)
    return np.asarray(values | (FIRST_BLOCK + np.arange(values.shape[1])) << BAND_BITS)


def list_band_buckets(signatures: SignatureRows, banding: Banding, bits: int) -> Buckets:
    """(n, 64) signatures -> (n, bands): the buckets of their bands."""
    values = hash_bands(signatures, banding.bands, bits)
    return np.asarray(values | np.arange(values.shape[1]) << BAND_BITS)


def make_bucket(language: Language, bucket: int) -> Bucket:
    """A packed bucket as a record."""
    column, value = bucket >> BAND_BITS, bucket & (1 << BAND_BITS) - 1
    if column < FIRST_BLOCK:
        return Bucket(BucketKind.SIGNATURE, language, column, (value,))
    return Bucket(BucketKind.SIMHASH, language, column - FIRST_BLOCK, (value,))


class LookupRequest(Struct, frozen=True):
    """The buckets in which n stories of one language are looked up.

    `buckets` are distinct and ascending.  `block_positions` (n, hamming + 2) and `band_positions` (signed stories,
    bands) are the positions of each story's buckets among them; `signed` (n,) marks the stories with a signature.
    """

    language: Language
    buckets: Buckets
    block_positions: Buckets
    band_positions: Buckets
    signed: npt.NDArray[np.bool_]


def make_request(
    language: Language, stories: Sequence[BandedFingerprint], banding: Banding, bits: int, *, blocks: bool = True
) -> LookupRequest:
    """The buckets that these stories of one language fall into; without `blocks` only those of their signatures."""
    signed = [story.signature for story in stories if story.signature is not None]
    simhashes = np.frombuffer(b"".join(story.simhash for story in stories), np.uint64).reshape(-1, 2)
    of_blocks = list_block_buckets(simhashes, banding, bits)[:, : None if blocks else 0]
    of_bands = list_band_buckets(stack_signatures(signed), banding, bits)
    buckets, positions = np.unique(np.concatenate((of_blocks.ravel(), of_bands.ravel())), return_inverse=True)
    return LookupRequest(
        language,
        buckets,
        positions[: of_blocks.size].reshape(of_blocks.shape),
        positions[of_blocks.size :].reshape(of_bands.shape),
        np.array([story.signature is not None for story in stories], np.bool_),
    )


def join_results(request: LookupRequest, contents: Sequence[bytes | None], banding: Banding) -> list[LookupResult]:
    """The result for each story of the request.

    `contents` are those of the requested buckets, None for an empty one.  Raises IndexDamaged for a bucket that does
    not consist of numbers.
    """
    lengths = [0 if content is None else len(content) for content in contents]
    sizes, odd = np.divmod(np.array(lengths, np.int64), NUMBER_BYTES)
    if odd.any():
        raise IndexDamaged(f"the index is damaged: a bucket has {lengths[int(np.argmax(odd))]} bytes")
    edges = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=edges[1:])
    members = np.frombuffer(bytearray().join(filter(None, contents)), NUMBER)
    by_block, block_ends = find_shared(members, edges, request.block_positions, SHARED_BLOCKS)
    by_band, band_ends = find_shared(members, edges, request.band_positions, banding.shared)
    results, nth_signed = [], 0
    for story, is_signed in enumerate(request.signed.tolist()):
        numbers = by_block[block_ends[story] : block_ends[story + 1]]
        positions = request.block_positions[story]
        if is_signed:
            others = by_band[band_ends[nth_signed] : band_ends[nth_signed + 1]]
            numbers = union(numbers, others) if len(numbers) else others
            positions = np.concatenate((positions, request.band_positions[nth_signed]))
            nth_signed += 1
        full = positions[sizes[positions] > banding.max_bucket].tolist()
        large = {make_bucket(request.language, int(request.buckets[n])): int(sizes[n]) for n in full}
        results.append(LookupResult(set(), numbers, large))
    return results


class Additions(NamedTuple):
    """Story numbers to append to buckets: the buckets, ascending, the count for each, and the numbers in this order."""

    buckets: Buckets
    counts: Buckets
    numbers: bytes

    def by_bucket(self) -> Iterator[tuple[int, bytes]]:
        """Each bucket and the numbers to append to it."""
        start = 0
        for bucket, end in zip(self.buckets.tolist(), (np.cumsum(self.counts) * NUMBER_BYTES).tolist(), strict=True):
            yield bucket, self.numbers[start:end]
            start = end

    def chunks(self, size: int) -> Iterator["Additions"]:
        """The same additions, at most `size` buckets at a time."""
        ends = np.cumsum(self.counts, dtype=np.int64) * NUMBER_BYTES
        for first in range(0, len(self.buckets), size):
            counts = self.counts[first : first + size]
            end = int(ends[first + len(counts) - 1])
            start = end - int(counts.sum()) * NUMBER_BYTES
            yield Additions(self.buckets[first : first + size], counts, self.numbers[start:end])


NO_ADDITIONS = Additions(np.empty(0, np.int64), np.empty(0, np.int64), b"")


def make_additions(
    language: Language, changes: Sequence[Change], banding: Banding, bits: int, *, blocks: bool = True
) -> Additions:
    """What these changes add to the buckets of a language.  Raises Fatal for a story number of more than 32 bits."""
    new = [(change.number, change.new) for change in changes if change.new and change.new.language == language]
    if not new:
        return NO_ADDITIONS
    for number, _ in new:
        if number >> 8 * NUMBER_BYTES:
            raise Fatal(f"story number {number} has more than 32 bits: an index holds no more versions of stories")
    request = make_request(language, [story for _, story in new], banding, bits, blocks=blocks)
    numbers = np.array([number for number, _ in new], NUMBER)
    positions = np.concatenate((request.block_positions.ravel(), request.band_positions.ravel()))
    of_blocks = numbers.repeat(request.block_positions.shape[1])
    of_bands = numbers[request.signed].repeat(request.band_positions.shape[1])
    appended = np.concatenate((of_blocks, of_bands))[np.argsort(positions, kind="stable")].tobytes()
    return Additions(request.buckets, np.bincount(positions, minlength=len(request.buckets)), appended)


def count_growth(changes: Sequence[Change]) -> dict[Language, int]:
    """By how many stories each language grows or, below zero, shrinks; languages that do neither are left out."""
    growth: Counter[Language] = Counter()
    growth.update(change.new.language for change in changes if change.new)
    growth.subtract(change.old.language for change in changes if change.old)
    return {language: n for language, n in growth.items() if n}


def group_places(stories: Sequence[BandedFingerprint]) -> dict[Language, list[int]]:
    """The places of each language's stories in the sequence."""
    places: dict[Language, list[int]] = {}
    for place, story in enumerate(stories):
        places.setdefault(story.language, []).append(place)
    return places


Entry = tuple[int, int]  # the place of a story among those compared, and one of its buckets


class Inserted(NamedTuple):
    """Some stories of one language that changes insert: their places among the changes, and their fingerprints."""

    language: Language
    places: list[int]
    fingerprints: list[BandedFingerprint]


def group_inserted(changes: Sequence[Change]) -> Iterator[Inserted]:
    """The stories that these changes insert, STORIES_PER_READ of a language at a time."""
    inserted = [(place, change.new) for place, change in enumerate(changes) if change.new is not None]
    for language, of_language in group_places([banded for _, banded in inserted]).items():
        for start in range(0, len(of_language), STORIES_PER_READ):
            chunk = [inserted[n] for n in of_language[start : start + STORIES_PER_READ]]
            yield Inserted(language, [place for place, _ in chunk], [banded for _, banded in chunk])


def find_lacking(
    request: LookupRequest, contents: Sequence[bytes | None], inserted: Inserted, changes: Sequence[Change]
) -> list[Entry]:
    """The entries that buckets lack of inserted stories, whose `request` it is.

    `contents` are those of the requested buckets, None for an empty one.  Raises IndexDamaged for a bucket that does
    not consist of numbers.
    """
    for content in contents:
        if content and len(content) % NUMBER_BYTES:
            raise IndexDamaged(f"the index is damaged: a bucket has {len(content)} bytes")
    signed = np.flatnonzero(request.signed).tolist()
    rows = [*enumerate(request.block_positions.tolist()), *zip(signed, request.band_positions.tolist(), strict=True)]
    numbers = [changes[place].number.to_bytes(NUMBER_BYTES, "little") for place in inserted.places]
    return [
        (inserted.places[story], int(request.buckets[place]))
        for story, places in rows
        for place in places
        if not _holds(contents[place] or b"", numbers[story])
    ]


def _holds(content: bytes, number: bytes) -> bool:
    at = content.find(number)
    while at >= 0 and at % NUMBER_BYTES:
        at = content.find(number, at + 1)
    return at >= 0


def make_missing_additions(entries: Sequence[Entry], changes: Sequence[Change]) -> Additions:
    """What adds the lacking entries to their buckets."""
    ordered = sorted((bucket, changes[place].number) for place, bucket in entries)
    buckets, counts = np.unique(np.array([bucket for bucket, _ in ordered], np.int64), return_counts=True)
    return Additions(buckets, counts, np.array([number for _, number in ordered], NUMBER).tobytes())


class Spool:
    """Members and band values in scratch files, by language and group of columns; `sizes` counts the stories.

    A group is a set of columns with the same members, such as all bands of the signature.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._members: dict[tuple[Language, str], np.dtype[Any]] = {}
        self.sizes: Counter[Language] = Counter()

    def put(self, language: Language, group: str, members: npt.NDArray[Any], values: Values) -> None:
        """Append n members to a group, with their values (n, columns)."""
        self._members[language, group] = members.dtype
        self._append(f"{language}.{group}", members)
        for column in range(values.shape[1]):
            self._append(f"{language}.{group}.{column}", np.ascontiguousarray(values[:, column]))

    def buckets(self, language: Language, group: str, column: int) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Each value of a column, ascending, with its members in the order in which they were put."""
        values = np.fromfile(self._folder / f"{language}.{group}.{column}", np.uint16)
        members = np.fromfile(self._folder / f"{language}.{group}", self._members[language, group])
        members = members[np.argsort(values, kind="stable")]
        counts = np.bincount(values)
        ends = np.cumsum(counts)
        for value in np.flatnonzero(counts).tolist():
            yield value, members[ends[value] - counts[value] : ends[value]]

    def _append(self, name: str, column: npt.NDArray[Any]) -> None:
        with (self._folder / name).open("ab") as file:
            column.tofile(file)


def spool_batch(
    spool: Spool, batch: "FingerprintArrays", bandings: Bandings, bits: Bits, *, blocks: bool = True
) -> None:
    """Write what packed buckets will hold of a batch of stories to the spool."""
    for language, stories in batch.by_language():
        signed, banding, width = stories.where(stories.signed), bandings[language], bits[language]
        spool.sizes[language] += len(stories)
        spool.put(language, BANDS, signed.numbers, hash_bands(signed.signatures, banding.bands, width))
        if blocks:
            spool.put(language, BLOCKS, stories.numbers, hash_blocks(stories.simhashes, banding.hamming, width))


class SpooledColumn(Struct, frozen=True):
    """A column of the packed buckets of a language; writing it counts as progress by `stories` stories."""

    language: Language
    group: str
    nth: int
    stories: int

    def buckets(self, spool: Spool) -> Iterator[tuple[int, bytes]]:
        """The column's buckets, ascending, and the contents of each."""
        column = self.nth if self.group == BANDS else FIRST_BLOCK + self.nth
        for value, members in spool.buckets(self.language, self.group, self.nth):
            yield column << BAND_BITS | value, members.astype(NUMBER, copy=False).tobytes()


def list_columns(spool: Spool, bandings: Bandings, *, blocks: bool = True) -> Iterator[SpooledColumn]:
    """All columns in the spool, in the order of their buckets; their `stories` add up to those of the spool."""
    for language in bandings:
        if n := spool.sizes[language]:
            columns = _list_columns(bandings[language], blocks=blocks)
            for at, (group, nth) in enumerate(columns):
                yield SpooledColumn(language, group, nth, n * (at + 1) // len(columns) - n * at // len(columns))


def _list_columns(banding: Banding, *, blocks: bool) -> list[tuple[str, int]]:
    columns = [(BANDS, band) for band in range(banding.bands)]
    return columns + [(BLOCKS, block) for block in range(banding.hamming + SHARED_BLOCKS) if blocks]
