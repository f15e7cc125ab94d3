"""Parquet files of fingerprints: their columns, the version that each row names, and how an import reads them."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.candidates.banding import Numbers
from neardup.core.fingerprint.version import algorithm, digest_of
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.languages import Languages
from neardup.errors import Misuse
from neardup.index.passages.postings import HASH_SHIFT, Keys
from neardup.ledger.imports import Columns
from neardup.source.rows import open_parquet

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch, Schema  # type: ignore[import-untyped]


TIMES = ("published_at", "updated_at", "known_since")
FLAG_TIMES = ("flagged_at", "decided_at")
TEXTS = ("author_id", "path", "title", "page_title", "name", "series_id")
NEEDED = ("id", "language", "text_hash", "simhash", "passages", "words", "shingles", "version")  # never null
ROWS = 50_000  # of a batch
FOLDER, FLAGS, CANDIDATES = "fingerprints", "flags", "candidates"


def make_schema() -> "Schema":
    """The columns with their types, in the order in which they are written.

    `passages` has 4 bytes a hash, little-endian, ascending.
    """
    import pyarrow as pa  # noqa: PLC0415 - it is optional, and takes a third of a second

    types = {
        "id": pa.int64(),
        "language": pa.string(),
        "text_hash": pa.binary(16),
        "simhash": pa.binary(16),
        "signature": pa.binary(64),
        "passages": pa.binary(),
        "words": pa.int64(),
        "shingles": pa.int64(),
        "published_at": pa.timestamp("ms", tz="UTC"),
        "etag": pa.string(),
        "version": pa.string(),
        "updated_at": pa.timestamp("ms", tz="UTC"),
        **dict.fromkeys(TEXTS, pa.string()),
        "known_since": pa.timestamp("ms", tz="UTC"),
        "text_sha256": pa.binary(32),
    }
    return pa.schema(list(types.items()))


def list_versions(languages: Languages) -> dict[str, str]:
    """Language -> the version of its fingerprints, as rows name it: that of the algorithm, and the language's."""
    return {name: f"{algorithm()} {digest_of(entry.golden)}" for name, entry in languages.items()}


class Batch(Struct, frozen=True):
    """Some rows of a file: their columns, and their passage hashes, of which row n has those from `starts[n]` on."""

    columns: Columns
    starts: npt.NDArray[np.int64]
    hashes: PassageHashes

    def __len__(self) -> int:
        return len(self.starts) - 1

    def make_keys(self, rows: Sequence[int], numbers: Numbers) -> Keys:
        """The sorted keys of the postings of some rows, under these numbers."""
        number_of, is_chosen = np.zeros(len(self), np.uint64), np.zeros(len(self), np.bool_)
        number_of[rows], is_chosen[rows] = numbers, True
        counts = np.diff(self.starts)
        keys = self.hashes.astype(np.uint64) << HASH_SHIFT | np.repeat(number_of, counts)
        return np.sort(keys[np.repeat(is_chosen, counts)])


def find_files(path: Path, folder: str) -> list[Path]:
    """The Parquet files in a folder of the folder `path`; if it has no `fingerprints`, those are in `path` itself."""
    if path.is_file():
        return [path] if folder == FOLDER else []
    found = path / folder
    return sorted((path if folder == FOLDER and not found.is_dir() else found).glob("*.parquet"))


def count_fitting_rows(files: Sequence[Path], languages: Languages) -> int:
    """Raise Misuse unless every row is of a known language and of its version; returns the number of rows."""
    expected, rows = list_versions(languages), 0
    for file in files:
        with open_parquet(file, str(file)) as opened:
            if missing := [name for name in NEEDED if name not in opened.schema_arrow.names]:
                raise Misuse(f"{file} has no column {missing[0]}")
            rows += opened.metadata.num_rows
            for batch in opened.iter_batches(ROWS, columns=["language", "version"]):
                pairs = zip(*(batch.column(name).to_pylist() for name in ("language", "version")), strict=True)
                for language, version in set(pairs):
                    _refuse(file, language, version, expected)
    return rows


def refuse_other_times(files: Sequence[Path]) -> None:
    """Raise Misuse if a file of flags has times of another type, such as texts."""
    import pyarrow as pa  # noqa: PLC0415 - loaded with the file

    for file in files:
        with open_parquet(file, str(file)) as opened:
            for column in opened.schema_arrow:
                if column.name in FLAG_TIMES and not (
                    pa.types.is_timestamp(column.type) or pa.types.is_null(column.type)
                ):
                    raise Misuse(f"{file}: the column {column.name} has values of type {column.type}, not times")


def _refuse(file: Path, language: str, version: str, expected: Mapping[str, str]) -> None:
    if language not in expected:
        raise Misuse(f"{file}: the language {language} is not known here")
    if version != expected[language]:
        raise Misuse(
            f"{file}: fingerprints of {language} of version {version}, this program makes {expected[language]}:"
            " they cannot be compared"
        )


def read_batches(files: Sequence[Path]) -> Iterator[Batch]:
    """The rows of the files, some at a time.  Raises Misuse for a value that no fingerprint has."""
    wanted = make_schema()
    for file in files:
        with open_parquet(file, str(file)) as opened:
            present = [name for name in wanted.names if name in opened.schema_arrow.names]
            for read in opened.iter_batches(ROWS, columns=present):
                yield _make_batch(read, wanted, str(file))


def read_rows(files: Sequence[Path]) -> Iterator[list[dict[str, Any]]]:
    """The rows of files of flags or candidates, some at a time."""
    for file in files:
        with open_parquet(file, str(file)) as opened:
            for read in opened.iter_batches(ROWS // 10):
                yield read.to_pylist()


def _make_batch(read: "RecordBatch", wanted: "Schema", called: str) -> Batch:
    import pyarrow as pa  # noqa: PLC0415 - loaded with the file

    columns: dict[str, Sequence[Any]] = {}
    for name, type_ in zip(wanted.names, wanted.types, strict=True):
        if name not in read.schema.names:
            columns[name] = [None] * len(read)
            continue
        try:
            column = read.column(name).cast(type_)
        except pa.ArrowInvalid as error:
            raise Misuse(f"{called}: the column {name} does not fit: {error}") from None
        if name in NEEDED and column.null_count:
            raise Misuse(f"{called}: a row has no {name}")
        if name == "passages":
            starts, hashes = _read_hashes(column, called)
        elif name in TIMES:
            columns[name] = column.cast(pa.int64()).to_pylist()
        else:
            columns[name] = column.to_pylist()
    if len(read) and min(columns["id"]) < 0:
        raise Misuse(f"{called}: the id {min(columns['id'])} is negative: works are not imported")
    return Batch(columns, starts, hashes)


def _read_hashes(column: "Array", called: str) -> tuple[npt.NDArray[np.int64], PassageHashes]:
    """The passage hashes of all rows, one row after the other, and where each row's start."""
    _, ends, data = column.buffers()
    places = np.frombuffer(ends, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    content = np.frombuffer(data or b"", np.uint8)[places[0] : places[-1]]
    starts = (places - places[0]) // 4
    if (np.diff(places) % 4).any():
        raise Misuse(f"{called}: the passages of a row are not passage hashes of 4 bytes each")
    hashes = content.view("<u4").astype(np.uint32)
    ascends = np.ones(len(hashes) + 1, np.bool_)
    ascends[1:-1] = hashes[1:] > hashes[:-1]
    ascends[starts] = True
    if not ascends.all():
        raise Misuse(f"{called}: the passages of a row do not ascend")
    return starts, hashes
