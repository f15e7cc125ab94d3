"""Any number of synthetic stories, with the languages mixed in the platform's proportions."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np
from msgspec import Struct
from neardup.config import Thresholds
from neardup.core.candidates.banding import FingerprintArrays
from neardup.core.fingerprint.word_hashes import measure_hamming
from neardup.records import BandedFingerprint, Fingerprinted, Language

from tests.support import synthetic
from tests.support.languages import NUMBER_OF, SAMPLED
from tests.support.synthetic import (
    FILL_BATCH,
    FIRST_LISTED_ID,
    HASH_BYTES,
    ID_STEP,
    PLATFORM,
    UNRELATED,
    Distribution,
    Stories,
    stories_of,
)

ALL = sum(PLATFORM.values())
COPY_SHARE = 0.02  # the share of stories that are copies of others
THRESHOLDS = Thresholds()
SEED = 1


class Probe(Struct, frozen=True):
    """A story to look up, and the number and the id of its original: (0, 0) if it is unrelated to all stories.

    A lookup must find the original of a probe that is `near` (within the Hamming distance) or `shares_bands` (enough of
    their signatures).
    """

    banded: BandedFingerprint
    original: tuple[int, int] = (0, 0)
    near: bool = False
    shares_bands: bool = False


def divide(stories: int, shares: Mapping[Language, int]) -> dict[Language, int]:
    """A number of stories, divide among the languages in these shares."""
    edges = np.rint(np.cumsum(list(shares.values())) * (stories / sum(shares.values()))).astype(np.int64)
    return dict(zip(shares, np.diff(edges, prepend=0).tolist(), strict=True))


class Corpus:
    """A stream of distinct stories, `uniform` or as skewed as `prose`, with ascending ids; `drawn` counts them."""

    def __init__(self, kind: str, shares: Mapping[Language, int] = PLATFORM) -> None:
        self._shares = shares
        self._rng = np.random.default_rng(SEED)
        self.drawn = 0
        self._distributions = {
            language: synthetic.prose(language) if kind == "prose" else synthetic.uniform() for language in SAMPLED
        }

    def pages(self, stories: int) -> Iterator[list[Fingerprinted]]:
        """The next stories in random order, FILL_BATCH at a time."""
        sizes = divide(stories, self._shares)
        streams = [_bandeds(self._rng, language, self._distributions[language], n) for language, n in sizes.items()]
        remaining = np.array(list(sizes.values()))
        while size := min(FILL_BATCH, int(remaining.sum())):
            counts = self._rng.multivariate_hypergeometric(remaining, size)
            mixed = [value for stream, n in zip(streams, counts.tolist(), strict=True) for value in islice(stream, n)]
            ids = (FIRST_LISTED_ID + ID_STEP * np.arange(self.drawn, self.drawn + size)).tolist()
            yield stories_of(self._rng, ids, [mixed[n] for n in self._rng.permutation(size)])
            remaining -= counts
            self.drawn += size

    def take(self, stories: int) -> list[Fingerprinted]:
        """The next stories as one list."""
        return list(chain.from_iterable(self.pages(stories)))

    def probes(self, originals: FingerprintArrays) -> list[Probe]:
        """As many probes as `originals` in each language, in random order: half unrelated, half copies of them."""
        probes: list[Probe] = []
        for language in SAMPLED:
            known = originals.where(originals.languages == NUMBER_OF[language])
            if len(known):
                stories = Stories(known.simhashes.view(np.uint8).reshape(-1, HASH_BYTES), known.signatures)
                drawn = synthetic.make_probes(self._rng, self._distributions[language], stories, len(known))
                probes += _compared(language, drawn, known)
        return [probes[n] for n in self._rng.permutation(len(probes))]


def _bandeds(
    rng: np.random.Generator, language: Language, distribution: Distribution, count: int
) -> Iterator[BandedFingerprint]:
    for part in synthetic.draw_chunks(rng, distribution, count, COPY_SHARE):
        for simhash, signature in zip(part.simhashes, part.signatures, strict=True):
            yield BandedFingerprint(language, simhash.tobytes(), signature.tobytes())


def _compared(language: Language, drawn: synthetic.Probes, known: FingerprintArrays) -> Iterator[Probe]:
    """The drawn probes, each compared with its original."""
    simhashes, signatures = drawn.stories.simhashes, drawn.stories.signatures
    positions = drawn.originals
    bits = measure_hamming(np.ascontiguousarray(simhashes).view(np.uint64), known.simhashes[positions])
    bands = np.count_nonzero(
        np.ascontiguousarray(signatures).view(">u2") == np.ascontiguousarray(known.signatures[positions]).view(">u2"),
        axis=1,
    )
    originals = zip(known.numbers[positions].tolist(), known.ids[positions].tolist(), strict=True)
    for n, original in enumerate(originals):
        banded = BandedFingerprint(language, simhashes[n].tobytes(), signatures[n].tobytes())
        if drawn.kinds[n] == UNRELATED:
            yield Probe(banded)
        else:
            near, shares_bands = bits[n] <= THRESHOLDS.hamming, bands[n] >= THRESHOLDS.shared_bands
            yield Probe(banded, original, bool(near), bool(shares_bands))


def without_signatures(probes: Sequence[Probe]) -> list[Probe]:
    """The same probes for lookups by SimHash alone."""
    return [
        Probe(BandedFingerprint(probe.banded.language, probe.banded.simhash), probe.original, probe.near)
        for probe in probes
    ]
