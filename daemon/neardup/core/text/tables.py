"""The tables of `codepoints`, read from the file beside this module, which takes a tenth of the time to compute them.

`python -m neardup.core.text.tables` writes the file.  It is of one version of Unicode; under a Python with another one
the tables are computed.
"""

import unicodedata
from functools import cache
from pathlib import Path

import numpy as np

from neardup.core.text import codepoints, look_alikes
from neardup.core.text.codepoints import CODE, LETTERS_END, Codes, Tables
from neardup.core.text.look_alikes import readings

FILE = Path(__file__).with_name("tables.npz")
BETWEEN = " "  # forms, which have no spaces


@cache
def tables() -> Tables:
    """The tables for a text."""
    with np.load(FILE) as file:
        if str(file["unicode"]) == unicodedata.unidata_version:
            return file["table"], file["compositions"], file["readings"]
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
    with np.load(FILE) as file:
        if str(file["unicode"]) == unicodedata.unidata_version:
            return dict(zip(file["formed"].tolist(), str(file["forms"]).split(BETWEEN), strict=True))
    return look_alikes.forms()


def computed() -> Tables:
    """The tables for a text, by Python's Unicode data."""
    return codepoints.flagged_table(), codepoints.compositions(), readings()


if __name__ == "__main__":
    flagged, composed, read_as = computed()
    formed = look_alikes.forms()
    np.savez_compressed(
        FILE,
        unicode=unicodedata.unidata_version,
        table=flagged,
        compositions=composed,
        readings=read_as,
        formed=np.array(list(formed), np.uint32),
        forms=BETWEEN.join(formed.values()),
    )
