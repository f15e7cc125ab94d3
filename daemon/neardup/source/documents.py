"""Documents to scan: texts with names, each below the URL of their texts."""

import os
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from neardup.records import Dead, Language


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its name, and its path below content.url.  If its `language` is None, it is to be detected."""

    name: str
    path: str
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class BadDocument:
    """A document that cannot be read, and why."""

    name: str
    reason: Dead
    error: str


Listed = AsyncIterator[Document | BadDocument]


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents to scan, and those of a reference, if there is one; `size` is their number, 0 if not known."""

    documents: Listed
    reference: Listed | None
    size: int


async def file_documents(files: Iterable[Path], *, root: Path, language: Language | None) -> Listed:
    """The files, which are below the folder `root`, named by their paths."""
    for file in files:
        yield _file_document(file, root, language)


def _file_document(file: Path, root: Path, language: Language | None) -> Document | BadDocument:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        return BadDocument(os.fsencode(file).decode("utf-8", "replace"), Dead.BAD_PATH, "its name is not UTF-8")
    return Document(str(file), os.path.relpath(file, root), language)
