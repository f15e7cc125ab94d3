"""Pages that are parts of one file: the texts that `neardup scan` found in tables."""

import re
from pathlib import Path

from neardup.errors import Fatal, Gone, Transient
from neardup.pages.local import File
from neardup.pages.plain_content import AnyContent

RANGE = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")


class TextFile:
    """The counterpart of `neardup.pages.s3.Bucket` for the URL texts:FILE; a path is START-END, in bytes.

    Raises Fatal where the file does not exist.
    """

    def __init__(self, path: Path, content: AnyContent) -> None:
        if not path.is_file():
            raise Fatal(f"{content.section}.url: no file {path}")
        self._path, self._max_bytes = path, content.max_bytes

    def begin(self, path: str, _: str | None) -> "Part":
        """A part of the file, read when its result is taken.  Raises Gone for a path that is not a range."""
        if not (found := RANGE.fullmatch(path)):
            raise Gone(f"{self._path} has nothing at {path!r}")
        return Part(self._path, int(found[1]), int(found[2]), self._max_bytes)


class Part(File):
    """The bytes [start, end) of a file."""

    def __init__(self, file: Path, start: int, end: int, max_bytes: int) -> None:
        self._file, self._start, self._size, self.max_bytes = file, start, end - start, max_bytes

    @property
    def url(self) -> str:
        """The path of the file, and the range."""
        return f"{self._file}/{self._start}-{self._start + self._size}"

    def result(self) -> tuple[bytes, dict[str, str]]:
        """The bytes, without headers; of a part that is too large only one more than is allowed.

        Raises Gone where the file has no such part, Transient.
        """
        size = min(self._size, self.max_bytes + 1)
        try:
            with self._file.open("rb") as file:
                file.seek(self._start)
                body = file.read(max(size, 0))
        except OSError as error:
            raise Transient(f"{self.url}: {error.strerror}", "store_error") from error
        if len(body) != size:
            raise Gone(f"{self.url}: no such part")
        return body, {}
