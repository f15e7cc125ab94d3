"""What of a language's stories decides how much they take, measured on a sample or typical."""

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

FEW = 100  # stories of a language: of fewer the skew is not measured, but typical
COPY_ROWS = ROWS // 2  # stories that agree in so many rows, or differ in so few bits, are no strangers
COPY_BITS = 10
STYLES = 3  # times as many pairs of measured stories share two bands as would if bands were independent
MOST_SHARED = 0.5  # of the pairs share a band, where copies of one page are all there is
SURE = 4  # of a sample that have a band in common, for it to be no chance


@dataclass(frozen=True, slots=True)
class Profile:
    """A language's stories on average.

    `sketch_skew` and `hash_skew` tell how often two unrelated ones share a band of their signatures and of
    their SimHashes, in times of the uniform 2 ** -16; `two_bands` is the share of pairs that share two bands
    of their signatures and more, `fullest` that of the stories in the fullest bucket of all, 0 where it is not known.
    """

    sketch_skew: float
    hash_skew: float
    two_bands: float
    fullest: float = 0.0
    signed: float = 1.0
    readable: float = 1.0
    row: StoryRow = field(default_factory=StoryRow)


# Of 5,954 real documents (encyclopedias, news, manuals, scripture) those of 100 words and more of which no two
# are copies, as `python -m tests.bench.skew` measures them.  Those of Marathi are too few to collide: rows and
# bits taken as independent.  English alone has pairs enough to tell how many share two bands; that of the others
# is STYLES times what it would be if bands were independent.
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
OF_OTHERS = Profile(3.0, 8.0, 3.0e-6)  # of a language that was not measured: the middle of these


MOST = 5000  # stories that are compared with each other


def measured(language: Language, outcomes: Sequence[Outcome]) -> Profile:
    """The profile of a sample; its skews are typical where fewer than FEW signatures are."""
    made = [one for one in outcomes if isinstance(one, Fingerprinted)]
    typical = TYPICAL.get(language, OF_OTHERS)
    if not made:
        return typical
    common = replace(
        typical,
        signed=fmean(one.fingerprint.signature is not None for one in made),
        readable=1 - sum(isinstance(one, Skipped) for one in outcomes) / len(outcomes),
        row=_row(made),
    )
    signed = [one.fingerprint for one in made if one.fingerprint.signature is not None]
    if len(signed) < FEW:
        return common
    signatures = signature_rows([one.signature for one in signed if one.signature])
    simhashes = hash_rows([one.simhash for one in signed])
    apart = _strangers(signatures[:MOST], simhashes[:MOST])
    if len(apart) < FEW:
        return common
    sketch_skew, hash_skew, two_bands = _skews(signatures[apart], simhashes[apart])
    fullest = _fullest(signatures)
    return replace(common, sketch_skew=sketch_skew, hash_skew=hash_skew, two_bands=two_bands, fullest=fullest)


def _row(made: Sequence[Fingerprinted]) -> StoryRow:
    """What the ledger would hold of them, but for the hashes."""

    def mean(size: Callable[[Fingerprinted], float]) -> float:
        return fmean(map(size, made))

    return StoryRow(
        highest_id=max(one.story.id for one in made),
        title=mean(lambda one: len((one.story.title or "").encode())),
        path=mean(lambda one: len((one.story.path or "").encode())),
        author_id=mean(lambda one: _stored(packed_id(one.story.author_id))),
        etag=mean(lambda one: _stored(packed_etag(one.etag))),
        dates=mean(lambda one: (one.story.published_at is not None) + (one.story.updated_at is not None)),
    )


def _stored(value: bytes | str | int | None) -> int:
    if value is None:
        return 0
    return integer_bytes(value) if isinstance(value, int) else len(value)


def _strangers(signatures: SignatureRows, simhashes: HashRows) -> list[int]:
    """Places of stories of which no two are copies: of each pair of copies the former."""
    apart: list[int] = []
    for place in range(len(signatures)):
        alike = agreeing(signatures[apart], signatures[place]) >= COPY_ROWS
        if not (alike | (hamming(simhashes[apart], simhashes[place]) <= COPY_BITS)).any():
            apart.append(place)
    return apart


def _skews(signatures: SignatureRows, simhashes: HashRows) -> tuple[float, float, float]:
    """The two skews, and the pairs that share two bands.

    A skew is the share of pairs that share a band, or that would if rows and bits were independent.

    The latter is the less, and far steadier in a small sample.
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
    """The share of pairs that share two bands and more; 0 for fewer than SURE pairs."""
    pairs = sum(
        int(np.count_nonzero(np.count_nonzero(bands[n + 1 :] == bands[n], axis=1) > 1)) for n in range(len(bands) - 1)
    )
    return pairs / (len(bands) * (len(bands) - 1) / 2) if pairs >= SURE else 0.0


def _values(fingerprints: SignatureRows | HashRows) -> npt.NDArray[np.uint16]:
    """(n, ...) fingerprints -> (n, bands), whatever the order of their bytes."""
    return np.ascontiguousarray(fingerprints).view(np.uint16)


def collisions(values: npt.NDArray[np.unsignedinteger], size: int) -> Floats:
    """(n, columns) -> of each column the share of pairs that have the same value."""
    counts = np.array([np.bincount(column, minlength=size) for column in values.T])
    return np.asarray((counts * (counts - 1)).sum(axis=1) / (len(values) * (len(values) - 1)))


def _fullest(signatures: SignatureRows) -> float:
    """The share of stories in the fullest bucket, copies and all; 0 where no bucket has SURE of them."""
    most = max(int(np.bincount(band).max()) for band in _values(signatures).T)
    return most / len(signatures) if most >= SURE else 0.0
