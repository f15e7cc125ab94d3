"""The fingerprints of many stories as numpy arrays, one array per field."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.fingerprint.minhash import SignatureRows, signature_rows
from neardup.core.verify.scores import HashRows, hash_rows
from neardup.records import Language

ARRAYS = ("numbers", "ids", "languages", "simhashes", "signatures", "signed")


@dataclass(frozen=True, slots=True)
class FingerprintArrays:
    """The fingerprints of n stories; each array has n rows.

    `numbers` are the ledger's story numbers, `languages` its numbers of languages, which `names` maps to languages,
    `simhashes` (n, 2) and `signatures` (n, 64).  `signed` marks the stories that have a signature; the others have a
    row of zeros.
    """

    numbers: Numbers
    ids: npt.NDArray[np.int64]
    languages: npt.NDArray[np.uint8]
    simhashes: HashRows
    signatures: SignatureRows
    signed: npt.NDArray[np.bool_]
    names: Mapping[int, Language]

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, int, bytes, bytes | None]], names: Mapping[int, Language]) -> Self:
        """Arrays of rows of number, id, language's number, SimHash (16 bytes) and signature (64 bytes, or None)."""
        numbers, ids, languages, simhashes, signatures = tuple(zip(*rows, strict=True)) or ((),) * 5
        return cls(
            np.array(numbers, np.uint32),
            np.array(ids, np.int64),
            np.array(languages, np.uint8),
            hash_rows(simhashes).copy(),
            signature_rows(signatures).copy(),
            np.array([signature is not None for signature in signatures], np.bool_),
            names,
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def where(self, kept: npt.NDArray[np.bool_]) -> Self:
        """The stories for which `kept` (n,) is true."""
        return replace(self, **{name: getattr(self, name)[kept] for name in ARRAYS})

    def by_language(self) -> Iterator[tuple[Language, Self]]:
        """Each language that occurs, with its stories."""
        for number in np.unique(self.languages).tolist():
            yield self.names[number], self.where(self.languages == number)
