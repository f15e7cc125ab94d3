"""Any number of synthetic stories, the languages mixed and as large beside each other as the platform's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from neardup.config import Thresholds
from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.verify.scores import hamming
from neardup.records import Banded, Fingerprinted, Language

from tests.support import synthetic
from tests.support.languages import NUMBER_OF, SAMPLED
from tests.support.synthetic import HASH_BYTES, STRANGERS, Source, Stories
from tests.support.synthetic_stories import FILL_BATCH, FIRST_ID, ID_STEP, PLATFORM, told

ALL = sum(PLATFORM.values())
COPIES = 0.02  # of the stories are copies of others
DETECTION = Thresholds()
SEED = 1


@dataclass(frozen=True, slots=True)
class Probe:
    """A story to look up, and of the one that it is a copy of the number and the id: (0, 0) for a stranger.

    Its bands must bring that one up where the two are `near`, or `alike` in enough bands of their signatures.
    """

    banded: Banded
    original: tuple[int, int] = (0, 0)
    near: bool = False
    alike: bool = False


def divided(stories: int, shares: Mapping[Language, int]) -> dict[Language, int]:
    """So many stories, divided by these shares."""
    edges = np.rint(np.cumsum(list(shares.values())) * (stories / sum(shares.values()))).astype(np.int64)
    return dict(zip(shares, np.diff(edges, prepend=0).tolist(), strict=True))


class Corpus:
    """Stories as uneven as `prose`, or `uniform` ones; none is given twice, ids ascend, and `given` counts."""

    def __init__(self, kind: str, shares: Mapping[Language, int] = PLATFORM) -> None:
        self._shares = shares
        self._rng = np.random.default_rng(SEED)
        self.given = 0
        self._sources = {
            language: synthetic.prose(language) if kind == "prose" else synthetic.uniform() for language in SAMPLED
        }

    def pages(self, stories: int) -> Iterator[list[Fingerprinted]]:
        """So many in random order, FILL_BATCH at a time."""
        left = divided(stories, self._shares)
        streams = [_bandeds(self._rng, language, self._sources[language], n) for language, n in left.items()]
        counts = np.array(list(left.values()))
        while size := min(FILL_BATCH, int(counts.sum())):
            taken = self._rng.multivariate_hypergeometric(counts, size)
            mixed = [one for stream, n in zip(streams, taken.tolist(), strict=True) for one in islice(stream, n)]
            ids = (FIRST_ID + ID_STEP * np.arange(self.given, self.given + size)).tolist()
            yield told(self._rng, ids, [mixed[n] for n in self._rng.permutation(size)])
            counts -= taken
            self.given += size

    def take(self, stories: int) -> list[Fingerprinted]:
        """So many at once."""
        return list(chain.from_iterable(self.pages(stories)))

    def probes(self, held: FingerprintArrays) -> list[Probe]:
        """As many as are `held`, of their languages, in random order: half strangers, half copies of them."""
        made: list[Probe] = []
        for language in SAMPLED:
            mine = held.where(held.languages == NUMBER_OF[language])
            if len(mine):
                stories = Stories(mine.simhashes.view(np.uint8).reshape(-1, HASH_BYTES), mine.signatures)
                drawn = synthetic.make_probes(self._rng, self._sources[language], stories, len(mine))
                made += _compared(language, drawn, mine)
        return [made[n] for n in self._rng.permutation(len(made))]


def _bandeds(rng: np.random.Generator, language: Language, source: Source, count: int) -> Iterator[Banded]:
    for part in synthetic.drawn(rng, source, count, COPIES):
        for simhash, signature in zip(part.simhashes, part.signatures, strict=True):
            yield Banded(language, simhash.tobytes(), signature.tobytes())


def _compared(language: Language, drawn: synthetic.Probes, held: FingerprintArrays) -> Iterator[Probe]:
    simhashes, signatures = drawn.stories.simhashes, drawn.stories.signatures
    originals = drawn.originals
    bits = hamming(np.ascontiguousarray(simhashes).view(np.uint64), held.simhashes[originals])
    bands = np.count_nonzero(
        np.ascontiguousarray(signatures).view(">u2") == np.ascontiguousarray(held.signatures[originals]).view(">u2"),
        axis=1,
    )
    known = zip(held.numbers[originals].tolist(), held.ids[originals].tolist(), strict=True)
    for n, original in enumerate(known):
        banded = Banded(language, simhashes[n].tobytes(), signatures[n].tobytes())
        if drawn.kinds[n] == STRANGERS:
            yield Probe(banded)
        else:
            near, alike = bits[n] <= DETECTION.hamming, bands[n] >= DETECTION.shared_bands
            yield Probe(banded, original, bool(near), bool(alike))


def unsigned(made: Sequence[Probe]) -> list[Probe]:
    """The same without signatures: what they look up is in the buckets of SimHashes alone."""
    return [Probe(Banded(one.banded.language, one.banded.simhash), one.original, one.near) for one in made]
