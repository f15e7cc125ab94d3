"""Fingerprints of stories that were never written: any number of them, of one language.

A SimHash's bits are fair coins.  A row of a signature is drawn from 256 shares: equal ones, or uneven
ones, for in prose some word pairs stand in many stories, and where one of them is the least its byte
recurs.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from daemon.core.banding import Numbers
from daemon.core.fingerprint import fingerprint
from daemon.core.minhash import ROWS, SignatureRows, signature_rows
from daemon.core.text import tokens
from daemon.records import Banded, Change, Language
from tests.bench.corpus import read_documents

LANGUAGE = Language.HINDI
FIRST_ID = 1_000_000_000
HASH_BYTES = 16
BYTE_VALUES = 256
ZIPF_EXPONENT = 0.7  # about what 3,000 English documents show

STRANGERS, BITS, FEW_ROWS, MANY_ROWS = "strangers", "3 bits differ", "3 of 10 rows kept", "6 of 10 rows kept"
COPIES = (BITS, FEW_ROWS, MANY_ROWS)
KINDS = (STRANGERS, STRANGERS, STRANGERS, *COPIES)  # a probe's kind, by its place

Shares = npt.NDArray[np.float64]  # (64, 256): how often a row takes each value
HashBytes = npt.NDArray[np.uint8]  # (n, 16)


@dataclass(frozen=True, slots=True)
class Stories:
    """Story n has the number n + 1 and the id FIRST_ID + n."""

    simhashes: HashBytes
    signatures: SignatureRows

    def __len__(self) -> int:
        return len(self.simhashes)

    def banded(self, start: int, stop: int) -> list[Banded]:
        pairs = zip(self.simhashes[start:stop], self.signatures[start:stop], strict=True)
        return [Banded(LANGUAGE, simhash.tobytes(), signature.tobytes()) for simhash, signature in pairs]

    def changes(self, start: int, stop: int, batch: int) -> Iterator[list[Change]]:
        """What a ledger tells an index of the new stories from start to stop, so many at a time."""
        for at in range(start, stop, batch):
            new = enumerate(self.banded(at, min(at + batch, stop)), at)
            yield [Change(n + 1, FIRST_ID + n, None, banded, n + 1) for n, banded in new]


@dataclass(frozen=True, slots=True)
class Probes:
    """Stories to look up, the kind of each, and the place of the story that it is a copy of."""

    stories: Stories
    kinds: Sequence[str]
    originals: Numbers


def uniform_shares() -> Shares:
    return np.full((ROWS, BYTE_VALUES), 1 / BYTE_VALUES)


def zipf_shares(rng: np.random.Generator) -> Shares:
    """Each row's values in an order of its own, the n-th as frequent as n ** -ZIPF_EXPONENT."""
    weights = np.arange(1, BYTE_VALUES + 1) ** -ZIPF_EXPONENT
    return rng.permuted(np.tile(weights / weights.sum(), (ROWS, 1)), axis=1)


def measured_shares(corpus: Path) -> tuple[Shares, Language, int]:
    """The shares in the corpus's most frequent language, that language, and its number of signatures."""
    documents = read_documents(corpus / "manifest.csv", corpus / "html")
    [(language, _)] = Counter(document.language for document in documents).most_common(1)
    made = [fingerprint(tokens(document.text)) for document in documents if document.language == language]
    rows = signature_rows([one.signature for one in made if one.signature])
    counts = [np.bincount(row, minlength=BYTE_VALUES) for row in rows.T]
    return np.array(counts) / len(rows), language, len(rows)


def draw(rng: np.random.Generator, shares: Shares, count: int) -> Stories:
    """Stories that have nothing in common but by chance."""
    rows = [rng.choice(BYTE_VALUES, count, p=row).astype(np.uint8) for row in shares]
    return Stories(rng.integers(0, BYTE_VALUES, (count, HASH_BYTES), np.uint8), np.stack(rows, axis=1))


def make_probes(rng: np.random.Generator, shares: Shares, stories: Stories, count: int) -> Probes:
    """Half of them strangers, a sixth of each kind of copy."""
    places = rng.integers(0, len(stories), count).astype(np.uint32)
    originals = Stories(stories.simhashes[places], stories.signatures[places])
    fresh = draw(rng, shares, count)
    made = {
        STRANGERS: fresh,
        BITS: flipping_bits(rng, 3, originals, fresh),
        FEW_ROWS: keeping_rows(rng, 0.3, originals, fresh),
        MANY_ROWS: keeping_rows(rng, 0.6, originals, fresh),
    }
    kinds = [KINDS[n % len(KINDS)] for n in range(count)]
    simhashes = np.stack([made[kind].simhashes[n] for n, kind in enumerate(kinds)])
    signatures = np.stack([made[kind].signatures[n] for n, kind in enumerate(kinds)])
    return Probes(Stories(simhashes, signatures), kinds, places)


def keeping_rows(rng: np.random.Generator, share: float, originals: Stories, fresh: Stories) -> Stories:
    """Copies that keep so many of their original's rows, and of its SimHash nothing."""
    kept = rng.random(originals.signatures.shape) < share
    return Stories(fresh.simhashes, np.where(kept, originals.signatures, fresh.signatures))


def flipping_bits(rng: np.random.Generator, bits: int, originals: Stories, fresh: Stories) -> Stories:
    """Copies that differ from their original's SimHash in so many bits, and keep nothing of its signature."""
    order = rng.permuted(np.tile(np.arange(8 * HASH_BYTES), (len(originals), 1)), axis=1)
    flipped = np.packbits(order < bits, axis=1)
    return Stories(originals.simhashes ^ flipped, fresh.signatures)
