"""The properties of a language's stories that decide how much space they take, measured on a sample or typical."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import BANDS, ROWS_A_BAND
from neardup.core.fingerprint.minhash import ROWS, SignatureRows, agreeing, signature_rows
from neardup.core.verify.scores import HashRows, hamming, hash_rows
from neardup.index.spread import BAND_VALUES, BYTE_VALUES, Floats, two_shared
from neardup.ledger.compact_columns import packed_etag, packed_id
from neardup.ledger.size import StoryRow
from neardup.records import Fingerprinted, Language, Outcome, Skipped
from neardup.sqlite_pages import integer_bytes

HASH_BYTES = 4  # of a passage hash
FEW = 100  # with fewer stories of a language, its skew is taken as typical instead of measured
COPY_ROWS = ROWS // 2  # stories that agree in this many rows, or differ in at most COPY_BITS bits, are related
COPY_BITS = 10
STYLES = 3  # factor by which real pairs share two bands more often than with independent bands
MOST_SHARED = 0.5  # upper limit for the share of pairs that share a band, if nearly all stories are copies
SIGNIFICANT = 4  # stories or pairs of a sample that share a band, for it not to be by chance


@dataclass(frozen=True, slots=True)
class Profile:
    """The average story of a language.

    `signature_skew` and `simhash_skew` say how much more often than the uniform 2 ** -16 two unrelated stories share a
    band of their signatures and of their SimHashes.  `two_bands` is the share of pairs that share at least two bands of
    their signatures.  `fullest` is the share of the stories in the largest bucket, 0 if unknown.  `signed` is the
    share of stories with a signature, `readable` the share that can be fingerprinted, `passages` the mean number of
    passage hashes of a story, and `row` the average row of the ledger.
    """

    signature_skew: float
    simhash_skew: float
    two_bands: float
    fullest: float = 0.0
    signed: float = 1.0
    readable: float = 1.0
    passages: float = 91.0  # of 1,000 words
    row: StoryRow = field(default_factory=StoryRow)


# Measured by `python -m tests.bench.skew` on those of 5,954 real documents (encyclopedias, news, manuals, scripture)
# that have at least 100 words and are not copies.  Marathi has too few documents for shared bands, so its rows and bits
# are taken as independent.  Only English has enough pairs to count those that share two bands; for the other languages
# this is STYLES times the share with independent bands.
TYPICAL = {
    Language("HINDI"): Profile(10.0, 29.0, 3.3e-5, 0.034),
    Language("MALAYALAM"): Profile(2.2, 2.5, 1.5e-6, 0.006),
    Language("BENGALI"): Profile(3.1, 8.5, 3.0e-6),
    Language("MARATHI"): Profile(1.7, 3.0, 9.8e-7),
    Language("TAMIL"): Profile(2.3, 2.9, 1.8e-6, 0.018),
    Language("TELUGU"): Profile(1.5, 2.9, 7.2e-7),
    Language("GUJARATI"): Profile(17.0, 23.0, 9.3e-5, 0.054),
    Language("ENGLISH"): Profile(12.0, 32.0, 7.0e-5, 0.033),
    Language("ODIA"): Profile(6.1, 3.5, 8.1e-6),
    Language("PUNJABI"): Profile(6.3, 5.4, 1.3e-5, 0.023),
}
TYPICAL_OF_OTHERS = Profile(3.0, 8.0, 3.0e-6)  # for a language that was not measured: about the median of these


MOST = 5000  # largest number of stories that are compared with each other


def measured(language: Language, outcomes: Sequence[Outcome]) -> Profile:
    """The profile of a sample; the skews are typical if it has fewer than FEW signatures of unrelated stories."""
    fingerprinted = [one for one in outcomes if isinstance(one, Fingerprinted)]
    typical = TYPICAL.get(language, TYPICAL_OF_OTHERS)
    if not fingerprinted:
        return typical
    common = replace(
        typical,
        signed=fmean(one.fingerprint.signature is not None for one in fingerprinted),
        readable=1 - sum(isinstance(one, Skipped) for one in outcomes) / len(outcomes),
        passages=fmean(len(one.fingerprint.passages) / HASH_BYTES for one in fingerprinted),
        row=_average_row(fingerprinted),
    )
    signed = [one.fingerprint for one in fingerprinted if one.fingerprint.signature is not None]
    if len(signed) < FEW:
        return common
    signatures = signature_rows([one.signature for one in signed if one.signature])
    simhashes = hash_rows([one.simhash for one in signed])
    unrelated = _unrelated(signatures[:MOST], simhashes[:MOST])
    if len(unrelated) < FEW:
        return common
    signature_skew, simhash_skew, two_bands = _skews(signatures[unrelated], simhashes[unrelated])
    fullest = _fullest(signatures)
    return replace(
        common, signature_skew=signature_skew, simhash_skew=simhash_skew, two_bands=two_bands, fullest=fullest
    )


def _average_row(stories: Sequence[Fingerprinted]) -> StoryRow:
    """The average sizes of what the ledger would store of the stories, apart from the hashes."""

    def mean(size: Callable[[Fingerprinted], float]) -> float:
        return fmean(map(size, stories))

    return StoryRow(
        highest_id=max(one.story.id for one in stories),
        title=mean(lambda one: len((one.story.title or one.page_title or "").encode())),
        path=mean(lambda one: len((one.story.path or "").encode())),
        author_id=mean(lambda one: _stored(packed_id(one.story.author_id))),
        etag=mean(lambda one: _stored(packed_etag(one.etag))),
        dates=mean(lambda one: (one.story.published_at is not None) + (one.story.updated_at is not None)),
    )


def _stored(value: bytes | str | int | None) -> int:
    if value is None:
        return 0
    return integer_bytes(value) if isinstance(value, int) else len(value)


def _unrelated(signatures: SignatureRows, simhashes: HashRows) -> list[int]:
    """The positions of stories of which no two are related: of related stories, the first."""
    unrelated: list[int] = []
    for position in range(len(signatures)):
        similar = agreeing(signatures[unrelated], signatures[position]) >= COPY_ROWS
        near = hamming(simhashes[unrelated], simhashes[position]) <= COPY_BITS
        if not (similar | near).any():
            unrelated.append(position)
    return unrelated


def _skews(signatures: SignatureRows, simhashes: HashRows) -> tuple[float, float, float]:
    """The two skews, and the share of pairs that share two bands.

    A skew is computed from the share of pairs that share a band, or from the share that would with independent rows and
    bits, whichever is larger.  The second is a lower bound, and varies far less in a small sample.
    """
    bands, hash_bands = _values(signatures), _values(simhashes)
    rows = collisions(signatures, BYTE_VALUES).reshape(-1, ROWS_A_BAND).prod(axis=1)
    bits = np.unpackbits(np.ascontiguousarray(simhashes).view(np.uint8), axis=1)
    hashes = collisions(bits, 2).reshape(BANDS, -1).prod(axis=1)
    sharing = max(collisions(bands, BAND_VALUES).mean(), rows.mean())
    hash_sharing = max(collisions(hash_bands, BAND_VALUES).mean(), hashes.mean())
    by_chance = two_shared(np.minimum(rows * sharing / rows.mean(), MOST_SHARED))
    return BAND_VALUES * sharing, BAND_VALUES * hash_sharing, _sharing_two(bands) or STYLES * by_chance


def _sharing_two(bands: npt.NDArray[np.uint16]) -> float:
    """The share of pairs that share at least two bands; 0 for fewer than SIGNIFICANT such pairs."""
    pairs = sum(
        int(np.count_nonzero(np.count_nonzero(bands[n + 1 :] == bands[n], axis=1) > 1)) for n in range(len(bands) - 1)
    )
    return pairs / (len(bands) * (len(bands) - 1) / 2) if pairs >= SIGNIFICANT else 0.0


def _values(fingerprints: SignatureRows | HashRows) -> npt.NDArray[np.uint16]:
    """Split n fingerprints into their bands, of shape (n, bands); the byte order does not matter."""
    return np.ascontiguousarray(fingerprints).view(np.uint16)


def collisions(values: npt.NDArray[np.unsignedinteger], size: int) -> Floats:
    """The share of pairs with equal values, for each column of an (n, columns) array of values below `size`."""
    counts = np.array([np.bincount(column, minlength=size) for column in values.T])
    return np.asarray((counts * (counts - 1)).sum(axis=1) / (len(values) * (len(values) - 1)))


def _fullest(signatures: SignatureRows) -> float:
    """The share of stories in the largest bucket, copies included; 0 if it has fewer than SIGNIFICANT stories."""
    most = max(int(np.bincount(band).max()) for band in _values(signatures).T)
    return most / len(signatures) if most >= SIGNIFICANT else 0.0
