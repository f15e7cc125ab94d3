"""Documents to scan, listed as stories: numbered in order, each with its language."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from neardup.core.text.decoding import NoStoryText
from neardup.core.text.detect import UnknownScript, detect_language
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import page_text
from neardup.records import BadRow, Checkpoint, Dead, Language, ListedRow, Story
from neardup.source.parse import UNPRINTABLE

TEXT_BYTES = 4_096  # of a plain text, by which its language is detected
HEAD_BYTES = 65_536  # of a page, because its text begins late; the rest is read only if these bytes hold no letters
DOCUMENTS_AT_A_TIME = 64  # whose languages are detected off the event loop
WHOLE_PAGE = Extraction()


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its name, and its path below content.url.

    If its `language` is not known, it is detected by the bytes that `read` returns: so many, or all for -1.  `read`
    raises OSError.
    """

    name: str
    path: str
    read: Callable[[int], bytes]
    language: Language | None = None


@dataclass(frozen=True, slots=True)
class BadDocument:
    """A document that cannot be read, and why."""

    name: str
    reason: Dead
    error: str


class Documents:
    """A listing of documents: those of a reference, if there is one, and then the others.

    Their ids count from 1 in this order, and their titles are their names.  `size` is the number of documents, 0 if it
    is not known.  With a reference, `first_new` is the id of the first document after it, once that is listed.
    """

    name = "documents"

    def __init__(
        self,
        documents: AsyncIterator[Document | BadDocument],
        reference: AsyncIterator[Document | BadDocument] | None,
        size: int,
    ) -> None:
        self.size = size
        self.first_new: int | None = None
        self._documents = documents
        self._reference = reference

    async def stories(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedRow]:
        """All of them; `since` and `resume` are ignored."""
        number = 1
        if self._reference is not None:
            async for row in _listed(self._reference, number):
                yield row
                number += 1
            self.first_new = number
        async for row in _listed(self._documents, number):
            yield row


async def file_documents(
    files: Iterable[Path], *, root: Path, language: Language | None
) -> AsyncIterator[Document | BadDocument]:
    """The files, which are below the folder `root`, named by their paths."""
    for file in files:
        yield _file_document(file, root, language)


def _file_document(file: Path, root: Path, language: Language | None) -> Document | BadDocument:
    try:
        str(file).encode()
    except UnicodeEncodeError:
        return BadDocument(os.fsencode(file).decode("utf-8", "replace"), Dead.BAD_PATH, "its name is not UTF-8")
    return Document(str(file), os.path.relpath(file, root), partial(_read, file), language)


def _read(file: Path, size: int) -> bytes:
    """The first bytes of a file, or all for -1; none of what is not a regular file, which may never end."""
    if not file.is_file():
        return b""
    with file.open("rb") as opened:
        return opened.read(size)


async def _listed(documents: AsyncIterator[Document | BadDocument], number: int) -> AsyncIterator[ListedRow]:
    """The documents as rows, numbered from `number` on."""
    some: list[Document | BadDocument] = []
    async for document in documents:
        some.append(document)
        if len(some) == DOCUMENTS_AT_A_TIME:
            for row in await asyncio.to_thread(_rows_of, some, number):
                yield row
            number += len(some)
            some = []
    for row in await asyncio.to_thread(_rows_of, some, number):
        yield row


def _rows_of(documents: Iterable[Document | BadDocument], first: int) -> list[ListedRow]:
    return [_row_of(document, number) for number, document in enumerate(documents, first)]


def _row_of(document: Document | BadDocument, number: int) -> ListedRow:
    if isinstance(document, Document) and document.language is None:
        document = _with_language(document)
    name = UNPRINTABLE.sub("\ufffd", document.name)
    if isinstance(document, BadDocument):
        return BadRow(f"document {number}", document.reason, f"{name}: {document.error}", number)
    assert document.language is not None
    return Story(number, document.language, document.path, title=name, position=number)


def _with_language(document: Document) -> Document | BadDocument:
    """The document in the language that its text is detected to have."""
    try:
        return replace(document, language=detect_language(_beginning(document)))
    except UnknownScript as error:
        return BadDocument(document.name, Dead.BAD_LANGUAGE, f"{error}; --language compares it all the same")


def _beginning(document: Document) -> str:
    """The text at the beginning of a document; an empty one if it has none or cannot be read."""
    for size in (TEXT_BYTES, HEAD_BYTES, -1):
        try:
            head = document.read(size)
            text = page_text(head, None, WHOLE_PAGE)
        except OSError:
            break  # its page is read again, for the reason
        except NoStoryText:
            text = ""
        has_letters = any(map(str.isalpha, text))
        if len(head) != size or (has_letters and (size > TEXT_BYTES or b"<" not in head)):
            return text
    return ""
