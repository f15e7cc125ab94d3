"""A file that holds the texts of table rows, one after another, where reader processes find them."""

from pathlib import Path
from typing import Self

from neardup.errors import Fatal
from neardup.records import Dead, Language
from neardup.source.documents import BadDocument, Document


class Spool:
    """Appends texts to a file; a text's path is START-END, in bytes, below the URL `texts:FILE`.

    Raises Fatal if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._end = 0
        try:
            self._file = path.open("xb", buffering=0)  # unbuffered: a text is read as soon as it is listed
        except OSError as error:
            raise self._failed(error) from error

    def add(self, text: bytes) -> str:
        """Append a text; returns its path."""
        start = self._end
        rest = memoryview(text)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            raise self._failed(error) from error
        self._end += len(text)
        return f"{start}-{self._end}"

    def _failed(self, error: OSError) -> Fatal:
        return Fatal(f"cannot write the texts to {self._path}: {error.strerror}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def spooled_file(
    file: Path, name: str, language: Language | None, spool: Spool, max_bytes: int
) -> Document | BadDocument:
    """A file as a document whose text is in the spool; of a file that is too large, only the path of so many bytes."""
    try:
        if not file.is_file():
            return BadDocument(name, Dead.STORE_ERROR, "not a regular file")
        with file.open("rb") as opened:
            body = opened.read(max_bytes + 1)
    except OSError as error:
        reason = Dead.FORBIDDEN if isinstance(error, PermissionError) else Dead.STORE_ERROR
        return BadDocument(name, reason, error.strerror or str(error))
    path = spool.add(body) if len(body) <= max_bytes else f"0-{len(body)}"
    return Document(name, path, language)
