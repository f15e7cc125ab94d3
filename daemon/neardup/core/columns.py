"""Listed stories, fingerprinted pages and their outcomes in columns, the form in which they move through the pipeline.

A column is a list or an array with one value a story.  So no object is made for a story that has nothing unusual; what
is unusual leaves the columns and becomes an object.

A fingerprinted page crosses from process to process in one packed record: a header of fixed size and then what differs
in length: the passage hashes, the title, the opening and the ETag.  The records of several pages are their headers, one
after another, and then the rest of each, so that numpy reads the headers as an array.
"""

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from neardup.core.page import PageFingerprinted
from neardup.core.text.scripts import BLOCK, find_script_of_block
from neardup.records import (
    RENDERINGS,
    BadRow,
    BandedFingerprint,
    DeadLettered,
    Fingerprint,
    Fingerprinted,
    Language,
    Marks,
    Outcome,
    Rendering,
    Skipped,
    Story,
)

# `script` is one more than the number of a block of letters of the script, and 0 for none; see `core.text.scripts`.
# `rendered` is one more than the place in RENDERINGS, and 0 for none.
HEADER = np.dtype(
    [
        ("words", "<u4"),
        ("shingles", "<u4"),
        ("passages", "<u4"),  # how many hashes of 4 bytes
        ("title_bytes", "<u4"),  # in UTF-8; 0 for no title, and likewise below
        ("opening_bytes", "<u4"),
        ("etag_bytes", "<u4"),
        ("size", "<u4"),  # of the page, in bytes
        ("script", "<u2"),
        ("rendered", "u1"),
        ("flags", "u1"),  # SIGNED, MEASURED, HASHED
        ("measures", "<f8", 4),
        ("text_hash", "V16"),
        ("simhash", "V16"),
        ("signature", "V64"),  # zeros unless SIGNED
        ("text_sha256", "V32"),  # zeros unless HASHED
    ]
)
FIELDS = struct.Struct("<7IH2B4d16s16s64s32s")  # the same
assert FIELDS.size == HEADER.itemsize
SIGNED, MEASURED, HASHED = 1, 2, 4
NO_MEASURES, NO_SIGNATURE, NO_SHA256 = (0.0,) * 4, bytes(64), bytes(32)
BLOCKS = range(0x110000 // BLOCK)

Headers = npt.NDArray[np.void]  # of HEADER


class Records(NamedTuple):
    """The packed records of n pages: their headers, the rest of each, and their marks, which few have."""

    headers: bytes
    rest: bytes
    marks: dict[int, Marks]


def pack(page: PageFingerprinted) -> tuple[bytes, bytes]:
    """A page -> its header, and the rest of its record.  Its marks are not in it."""
    made = page.fingerprint
    title, opening, etag = _pack_text(page.title), _pack_text(page.opening), _pack_text(page.etag)
    header = FIELDS.pack(
        made.words,
        made.shingles,
        len(made.passages) // 4,
        len(title),
        len(opening),
        len(etag),
        page.size,
        0 if page.script is None else 1 + _find_block(page.script),
        0 if page.rendered is None else 1 + RENDERINGS.index(page.rendered),
        (SIGNED if made.signature is not None else 0)
        | (MEASURED if page.measures is not None else 0)
        | (HASHED if page.text_sha256 is not None else 0),
        *(page.measures or NO_MEASURES),
        made.text_hash,
        made.simhash,
        made.signature or NO_SIGNATURE,
        page.text_sha256 or NO_SHA256,
    )
    return header, made.passages + title + opening + etag


def _pack_text(text: str | None) -> bytes:
    return b"" if text is None else text.encode("utf-8", "surrogatepass")


@cache
def _find_block(script: str) -> int:
    """The number of the first block of letters of a script."""
    return next(block for block in BLOCKS if find_script_of_block(block) == script)


class PackedPages(Struct, frozen=True):
    """N fingerprinted pages in columns: their headers (n,) as an array, and lists of what differs in length."""

    headers: Headers
    passages: list[bytes]
    titles: list[str | None]
    openings: list[str | None]
    etags: list[str | None]
    marks: list[Marks]

    @classmethod
    def unpack(cls, records: Records) -> Self:
        headers, rest, at = np.frombuffer(records.headers, HEADER), records.rest, 0
        passages, titles, openings, etags = list[bytes](), list[str | None](), list[str | None](), list[str | None]()
        lengths = (headers[name].tolist() for name in ("passages", "title_bytes", "opening_bytes", "etag_bytes"))
        for hashes, *sizes in zip(*lengths, strict=True):
            passages.append(rest[at : (at := at + 4 * hashes)])
            for size, column in zip(sizes, (titles, openings, etags), strict=True):
                column.append(rest[at : (at := at + size)].decode("utf-8", "surrogatepass") if size else None)
        marks: list[Marks] = [()] * len(headers)
        for n, marks_of_page in records.marks.items():
            marks[n] = marks_of_page
        return cls(headers, passages, titles, openings, etags, marks)

    @classmethod
    def of(cls, pages: Iterable[PageFingerprinted]) -> Self:
        pages = list(pages)
        headers, rest = tuple(zip(*map(pack, pages), strict=True)) or ((), ())
        marks = {n: page.marks for n, page in enumerate(pages)}
        return cls.unpack(Records(b"".join(headers), b"".join(rest), marks))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        headers = np.concatenate([np.empty(0, HEADER), *(part.headers for part in parts)])
        return cls(headers, *([value for part in parts for value in part.lists[n]] for n in range(5)))

    @property
    def lists(self) -> tuple[list[Any], ...]:
        """What is not in the headers."""
        return self.passages, self.titles, self.openings, self.etags, self.marks

    def __len__(self) -> int:
        return len(self.headers)

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(self.headers[rows], *(column[rows] for column in self.lists))

    def take(self, places: Sequence[int]) -> Self:
        """The pages at these places."""
        return type(self)(
            self.headers[np.array(places, np.intp)], *([column[n] for n in places] for column in self.lists)
        )

    @property
    def scripts(self) -> list[str | None]:
        """The script of each, as in `PageFingerprinted`."""
        return [find_script_of_block(number - 1) if number else None for number in self.headers["script"].tolist()]

    @property
    def rendered(self) -> list[Rendering]:
        """Why pages were rendered, and by what, of those that were."""
        return [RENDERINGS[number - 1] for number in self.headers["rendered"].tolist() if number]

    @property
    def text_hashes(self) -> list[bytes]:
        return self._read_bytes("text_hash")

    @property
    def simhashes(self) -> list[bytes]:
        return self._read_bytes("simhash")

    @property
    def signatures(self) -> list[bytes | None]:
        return self._read_bytes_where("signature", SIGNED)

    @property
    def text_sha256s(self) -> list[bytes | None]:
        return self._read_bytes_where("text_sha256", HASHED)

    @property
    def signed(self) -> npt.NDArray[np.bool_]:
        """(n,) whether each has a signature."""
        return np.asarray(self.headers["flags"] & SIGNED != 0)

    @property
    def measured(self) -> npt.NDArray[np.bool_]:
        """(n,) whether the measures of each were taken."""
        return np.asarray(self.headers["flags"] & MEASURED != 0)

    def _read_bytes(self, field: str) -> list[bytes]:
        values: list[bytes] = self.headers[field].tolist()
        return values

    def _read_bytes_where(self, field: str, flag: int) -> list[bytes | None]:
        flags = self.headers["flags"].tolist()
        return [value if held & flag else None for value, held in zip(self._read_bytes(field), flags, strict=True)]

    def fingerprint(self, n: int) -> Fingerprint:
        """The fingerprint of one page."""
        header = self.headers[n]
        return Fingerprint(
            header["text_hash"].item(),
            header["simhash"].item(),
            header["signature"].item() if header["flags"] & SIGNED else None,
            int(header["words"]),
            int(header["shingles"]),
            self.passages[n],
        )

    def page(self, n: int) -> PageFingerprinted:
        """One page as an object."""
        header = self.headers[n]
        return PageFingerprinted(
            self.fingerprint(n),
            self.etags[n],
            int(header["size"]),
            self.titles[n],
            self.openings[n],
            find_script_of_block(int(header["script"]) - 1) if header["script"] else None,
            self.marks[n],
            tuple(header["measures"].tolist()) if header["flags"] & MEASURED else None,
            RENDERINGS[header["rendered"] - 1] if header["rendered"] else None,
            header["text_sha256"].item() if header["flags"] & HASHED else None,
        )


NO_PAGES = PackedPages(np.empty(0, HEADER), [], [], [], [], [])


# Stories and outcomes.

Key = int | str  # the id of a story, or the key of a row that describes none


class StoryColumns(Struct, frozen=True):
    """N listed stories: the fields of `Story` in their order, each as a list."""

    ids: list[int]
    languages: list[Language]
    paths: list[str | None]
    author_ids: list[str | None]
    titles: list[str | None]
    published_at: list[int | None]
    updated_at: list[int | None]
    positions: list[int]
    names: list[str | None]
    catalogues: list[str | None]
    licences: list[str | None]
    series_ids: list[str | None]

    @classmethod
    def of(cls, stories: Iterable[Story]) -> Self:
        rows = map(attrgetter(*Story.__struct_fields__), stories)
        return cls(*(list(column) for column in tuple(zip(*rows, strict=True)) or ((),) * len(Story.__struct_fields__)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        if not parts:
            return cls.of(())
        columns = zip(*(part.columns for part in parts), strict=True)
        return cls(*(list(chain.from_iterable(column)) for column in columns))

    @property
    def columns(self) -> tuple[list[Any], ...]:
        columns: tuple[list[Any], ...] = _columns_of(self)
        return columns

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(*(column[rows] for column in self.columns))

    def take(self, places: Sequence[int]) -> Self:
        """The stories at these places."""
        return type(self)(*([column[n] for n in places] for column in self.columns))

    def story(self, n: int) -> Story:
        """One story as an object."""
        return Story(*(column[n] for column in self.columns))

    def stories(self) -> Iterator[Story]:
        """All stories as objects."""
        return map(Story, *self.columns)


_columns_of = attrgetter(*StoryColumns.__struct_fields__)
ListedBlock = StoryColumns | BadRow  # what a listing consists of, in its order


class FingerprintedStories(Struct, frozen=True):
    """N stories that are new or whose texts have changed: the columns of `Fingerprinted`.

    `page_titles` name those that the listing does not.
    """

    stories: StoryColumns
    pages: PackedPages
    page_titles: list[str | None]

    @classmethod
    def of(cls, made: Iterable[Fingerprinted]) -> Self:
        made = list(made)
        pages = PackedPages.of(
            PageFingerprinted(
                story.fingerprint,
                story.etag,
                0,
                marks=story.marks,
                measures=story.measures,
                text_sha256=story.text_sha256,
            )
            for story in made
        )
        return cls(StoryColumns.of(outcome.story for outcome in made), pages, [outcome.page_title for outcome in made])

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        return cls(
            StoryColumns.concatenate([part.stories for part in parts]),
            PackedPages.concatenate([part.pages for part in parts]),
            [title for part in parts for title in part.page_titles],
        )

    def __len__(self) -> int:
        return len(self.stories)

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(self.stories[rows], self.pages[rows], self.page_titles[rows])

    def take(self, places: Sequence[int]) -> Self:
        """The stories at these places."""
        return type(self)(self.stories.take(places), self.pages.take(places), [self.page_titles[n] for n in places])

    def band_fingerprints(self) -> list[BandedFingerprint]:
        """What an index stores each by."""
        return list(map(BandedFingerprint, self.stories.languages, self.pages.simhashes, self.pages.signatures))

    def objects(self) -> Iterator[Fingerprinted]:
        """All stories as objects."""
        for n, story in enumerate(self.stories.stories()):
            page = self.pages.page(n)
            about = page.etag, self.page_titles[n], page.marks, page.measures, page.text_sha256
            yield Fingerprinted(story, page.fingerprint, *about)


class Outcomes(Struct, frozen=True):
    """The outcomes of distinct stories and rows: of those that were fingerprinted in columns, all others as objects."""

    made: FingerprintedStories
    others: list[Skipped | DeadLettered]

    @classmethod
    def of(cls, outcomes: Iterable[Outcome]) -> Self:
        outcomes = list(outcomes)
        made = FingerprintedStories.of(outcome for outcome in outcomes if isinstance(outcome, Fingerprinted))
        return cls(made, [outcome for outcome in outcomes if not isinstance(outcome, Fingerprinted)])

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        made = FingerprintedStories.concatenate([part.made for part in parts if len(part.made)])
        return cls(made, [outcome for part in parts for outcome in part.others])

    @property
    def keys(self) -> list[Key]:
        """The key of each, in the order of slices."""
        return [*self.made.stories.ids, *(get_key(outcome.story) for outcome in self.others)]

    def __len__(self) -> int:
        return len(self.made) + len(self.others)

    def __getitem__(self, rows: slice) -> Self:
        start, stop, _ = rows.indices(len(self))
        n = len(self.made)
        return type(self)(self.made[min(start, n) : min(stop, n)], self.others[max(start - n, 0) : max(stop - n, 0)])

    def objects(self) -> list[Outcome]:
        """All outcomes as objects."""
        return [*self.made.objects(), *self.others]


NONE_MADE = FingerprintedStories(StoryColumns.of(()), NO_PAGES, [])


def get_key(row: Story | BadRow) -> Key:
    """The key of a row among those in progress."""
    return row.id if isinstance(row, Story) else row.key
