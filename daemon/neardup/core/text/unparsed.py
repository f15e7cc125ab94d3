"""Reads the text of a page without parsing it, in time linear in its length, where a parser takes too long.

No selector applies, and hidden text counts as shown.  A comment, script or style that does not end is read as text, so
that it cannot hide the story.
"""

import html
import re

from neardup.core.text.elements import BLOCKS

MOST_CHARACTERS = 1_000_000  # of text: its fingerprint is within every budget
JUNK = (("<!--", "-->"), (r"<script\b", r"</script\b[^>]*>?"), (r"<style\b", r"</style\b[^>]*>?"))
REST = r"(?:[^>\"']|\"[^\"]*\"|'[^']*')*+>?"  # of a tag
BREAKS = re.compile(rf"</?(?:br|{'|'.join(sorted(BLOCKS, key=len, reverse=True))})\b{REST}", re.IGNORECASE)
TAGS = re.compile(rf"</?[a-z]{REST}|<!--|<[!?][^>]*>?", re.IGNORECASE)


def unparsed_text(markup: str) -> str:
    """Markup -> its text outside tags, with line breaks between blocks, up to MOST_CHARACTERS."""
    for begin, end in JUNK:
        # a search for an end that is not there would be repeated at each beginning
        after = max((found.end() for found in re.finditer(end, markup, re.IGNORECASE)), default=0)
        markup = re.sub(f"{begin}.*?{end}", "", markup[:after], flags=re.IGNORECASE | re.DOTALL) + markup[after:]
    text = TAGS.sub("", BREAKS.sub("\n", markup))
    return html.unescape(text)[:MOST_CHARACTERS]
