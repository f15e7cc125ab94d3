"""The tables of `codepoints`, read from the files beside this module, which takes no time: they are mapped into memory.

Processes share that memory, of which each reads what its texts need.  `python -m neardup.core.text.tables` writes the
files.  They are of one version of Unicode; under a Python with another one the tables are computed.
"""

import unicodedata
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.core.text import codepoints, look_alikes
from neardup.core.text.codepoints import CODE, LETTERS_END, Codes, Tables
from neardup.core.text.look_alikes import readings

FOLDER = Path(__file__).with_name("tables")  # has a folder for each version of Unicode
TABLES = "flagged_table", "compositions", "readings"
FORMED, FORMS = "formed", "forms"
BETWEEN = " "  # forms, which have no spaces


def are_kept() -> bool:
    """Whether there are files of this version of Unicode."""
    return _folder().is_dir()


@cache
def tables() -> Tables:
    """The tables for a text.  They cannot be written."""
    if are_kept():
        flagged, composed, read_as = map(_mapped, TABLES)
        return flagged, composed, read_as
    return computed()


@cache
def tables_of_normalised() -> Tables:
    """The tables for a text that is normalised already: each code point is its own normal form."""
    _, compositions, readings = tables()
    return np.arange(LETTERS_END, dtype=np.uint32), compositions, readings


@cache
def table() -> Codes:
    """(TABLE_END,) uint32: as `codepoints.table`."""
    return flagged_table() & np.uint32(CODE)


def flagged_table() -> Codes:
    """(TABLE_END,) uint32: as `codepoints.flagged_table`."""
    return tables()[0]


@cache
def forms() -> dict[int, str]:
    """As `look_alikes.forms`."""
    if are_kept():
        plain = bytes(_mapped(FORMS)).decode().split(BETWEEN)
        return dict(zip(_mapped(FORMED).tolist(), plain, strict=True))
    return look_alikes.forms()


def computed() -> Tables:
    """The tables for a text, by Python's Unicode data."""
    return codepoints.flagged_table(), codepoints.compositions(), readings()


def _folder() -> Path:
    return FOLDER / f"unicode-{unicodedata.unidata_version}"


def _mapped(name: str) -> npt.NDArray[Any]:
    # an ndarray, because slices of a memmap take longer
    return np.asarray(np.load(_folder() / f"{name}.npy", mmap_mode="r"))


def write() -> None:
    """Write the files."""
    _folder().mkdir(parents=True, exist_ok=True)
    formed = look_alikes.forms()
    arrays = dict(zip(TABLES, computed(), strict=True))
    arrays |= {
        FORMED: np.array(list(formed), np.uint32),
        FORMS: np.frombuffer(BETWEEN.join(formed.values()).encode(), np.uint8),
    }
    for name, array in arrays.items():
        np.save(_folder() / f"{name}.npy", np.ascontiguousarray(array))


if __name__ == "__main__":
    write()
