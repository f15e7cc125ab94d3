"""Cells of a CSV file that no spreadsheet takes for a formula.

Excel, LibreOffice and Google Sheets run a cell that begins with = + - or @, some also with their full-width
forms, and what they trim or skip before it differs: blanks, controls, byte order marks, zero-width characters.
Where a comma is the decimal mark, Excel cuts a row at semicolons and line ends, whatever stands in quotes; a
text that is pasted is cut at tabs.  So what follows one of those is guarded as a cell of its own.
"""

import re
import unicodedata

SIGNS = frozenset("=+-@\u2212")  # the last, the minus sign, is one of LibreOffice's
MAY_BE_FORMULA = re.compile(r"[^\w\s.,:!?()\u0900-\u0dff]|^[\t\r\n]")  # what no sign looks like is told quickly
CELL_STARTS = re.compile(r"(?<=[;\t\r\n])")
IGNORED_CATEGORIES = frozenset("CMZ")  # controls, formats and the unassigned; marks; blanks


def guarded(text: str) -> str:
    """The text, with an apostrophe before each part of it that a spreadsheet could run; it shows as text then."""
    if not MAY_BE_FORMULA.search(text):
        return text
    first, *rest = CELL_STARTS.split(text)
    lead = "'" if _may_be_formula(text) or text.startswith(("\t", "\r", "\n")) else ""
    return lead + first + "".join(f"'{part}" if _may_be_formula(part) else part for part in rest)


def _may_be_formula(text: str) -> bool:
    """Whether the first character that shows, quotes aside, is one that begins a formula."""
    for character in text:
        if character != '"' and unicodedata.category(character)[0] not in IGNORED_CATEGORIES:
            return unicodedata.normalize("NFKC", character)[0] in SIGNS
    return False
