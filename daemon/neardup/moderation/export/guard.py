"""Protection against CSV injection: no cell of a CSV file is run as a formula by a spreadsheet.

Excel, LibreOffice and Google Sheets run a cell that begins with = + - or @, some also with the full-width forms.
They trim or skip different characters before it: blanks, control characters, byte order marks, zero-width characters.
In locales with a decimal comma, Excel splits rows at semicolons and line ends even inside quotes, and pasted text is
split at tabs.  The text after each of these characters is therefore guarded like a cell of its own.
"""

import re
import unicodedata

SIGNS = frozenset("=+-@\u2212")  # LibreOffice also accepts U+2212, the minus sign
MAY_BE_FORMULA = re.compile(r"[^\w\s.,:!?()\u0900-\u0dff]|^[\t\r\n]")  # a fast test that most texts do not match
CELL_STARTS = re.compile(r"(?<=[;\t\r\n])")
IGNORED_CATEGORIES = frozenset("CMZ")  # Unicode categories: control, format and unassigned; marks; separators


def guarded(text: str) -> str:
    """The text with an apostrophe before each part that a spreadsheet could run, which makes it plain text."""
    if not MAY_BE_FORMULA.search(text):
        return text
    first, *rest = CELL_STARTS.split(text)
    prefix = "'" if _may_be_formula(text) or text.startswith(("\t", "\r", "\n")) else ""
    return prefix + first + "".join(f"'{part}" if _may_be_formula(part) else part for part in rest)


def _may_be_formula(text: str) -> bool:
    """Whether the first visible character other than a quote begins a formula."""
    for character in text:
        if character != '"' and unicodedata.category(character)[0] not in IGNORED_CATEGORIES:
            return unicodedata.normalize("NFKC", character)[0] in SIGNS
    return False
