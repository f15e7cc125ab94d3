"""Proposes CSS selectors for the boxes inside stories that say the same on page after page, such as share buttons."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.page import Page
from neardup.core.text.decoding import NoStoryText, decode
from neardup.records import Language

LEAST_REPEATS = 2  # pages on which a box says again what it says on others,
LEAST_SHARE = 0.1  # and as a share of all pages: a template of several may have boxes of its own
MOST_ELEMENTS = 20_000  # of a page that are examined
PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)  # of a class or an id that needs no escapes
BOXES = frozenset(["nav", "header", "footer", "aside", "form", "button"])  # selected by their tag too


def propose_strip(pages: Sequence[tuple[Language, Page]], body: str) -> tuple[str, ...]:
    """Selectors of what stands inside the stories of these pages, and says the same on every page of a language.

    `body` selects the stories; "" means that they are the whole pages.
    """
    stories = [(language, found) for language, page in pages if (found := _stories(page, body))]
    said = defaultdict[str, list[tuple[Language, str]]](list)  # by selector: what its elements say, page by page
    for language, story in stories:
        for selector, text in _texts(story).items():
            said[selector].append((language, text))
    least = max(LEAST_REPEATS, LEAST_SHARE * len(pages))
    repeated = {one for one, texts in said.items() if _repeats(texts) >= least}
    return tuple(dict.fromkeys(one for _, story in stories for one in _outermost(story, repeated)))


def _repeats(texts: Sequence[tuple[Language, str]]) -> int:
    """How many pages repeat the text of another; 0 where two pages of a language differ, or nothing is said."""
    languages, different = {language for language, _ in texts}, set(texts)
    return len(texts) - len(languages) if len(different) == len(languages) and any(text for _, text in texts) else 0


def _stories(page: Page, body: str) -> list[LexborNode]:
    """The elements of a page that are its story; none if it is no text."""
    try:
        root = LexborHTMLParser(decode(page.body, page.content_type)).root
    except NoStoryText:
        return []
    return [] if root is None else root.css(body or "body")


def _texts(story: Sequence[LexborNode]) -> dict[str, str]:
    """What the elements of each selector say on a page, without spaces."""
    texts = defaultdict[str, str](str)
    for node in _elements(story):
        for selector in _selectors(node):
            texts[selector] += "".join(node.text_lexbor().split())
    return texts


def _outermost(story: Sequence[LexborNode], selectors: set[str]) -> Iterator[str]:
    """One of these selectors for each element that has any, and is in no other such element."""
    for node in _elements(story, selectors):
        yield from [one for one in _selectors(node) if one in selectors][:1]


def _elements(story: Sequence[LexborNode], closed: Collection[str] = ()) -> Iterator[LexborNode]:
    """The elements inside a story, but for those inside one that a selector of `closed` matches."""
    pending = [child for node in reversed(story) for child in node.iter()]
    for _ in range(MOST_ELEMENTS):
        if not pending:
            break
        yield (node := pending.pop())
        if not closed or not any(one in closed for one in _selectors(node)):
            pending += node.iter()


def _selectors(node: LexborNode) -> list[str]:
    attributes = node.attributes
    own_id = attributes.get("id") or ""
    classes = [one for one in (attributes.get("class") or "").split() if PLAIN_NAME.fullmatch(one)]
    by_id = [f"#{own_id}"] if PLAIN_NAME.fullmatch(own_id) else []
    return [*(f".{one}" for one in classes), *by_id, *([node.tag] if node.tag in BOXES else [])]
