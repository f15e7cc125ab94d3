"""Many stories' fingerprints as arrays, one for each column."""

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
class Columns:
    """Of n stories the ledger's numbers, ids, languages, SimHashes and signatures.

    `languages` are numbers, which `names` maps to languages.  Where `signed` is false there is no signature, but
    zeros.
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
        """Number, id, language's number, SimHash (16 bytes) and signature (64) of each story."""
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
        """Some of them."""
        return replace(self, **{name: getattr(self, name)[kept] for name in ARRAYS})

    def by_language(self) -> Iterator[tuple[Language, Self]]:
        """Each language in it with its stories."""
        for number in np.unique(self.languages).tolist():
            yield self.names[number], self.where(self.languages == number)
