"""Proposes CSS selectors for the story on the pages of a site, from a few of its pages.

The story is the text that differs from page to page and is no link.  A selector is the better the more of that text it
holds, and the less other text.  Pages of several designs may need a selector each.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.page import Page
from neardup.core.text.decoding import NoStoryText, decode
from neardup.core.text.story_elements import INVISIBLE

PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)  # of a class or an id that needs no escapes
MOST_ELEMENTS = 20_000  # of a page that is examined
MOST_PAGES = 0.3  # text on more than this share of the pages is not a story's; some stories are copies of others
FEW_PAGES = 4  # of which even two share no story
LEAST_SCORE = 0.5  # as a share of the best score on a page
WHOLE = "body"
MOST_SELECTORS = 3
# A selector that is tighter than another may hold this much less: bylines and dates differ from page to page too.
TOLERANCE = 0.03
CONTAINERS = frozenset(["article", "blockquote", "body", "div", "main", "section", "td"])
NAVIGATION = frozenset(["a", "nav", "header", "footer", "aside", "form", "button", "label"])


@dataclass(slots=True)
class _Words:
    """The numbers of words of a story and of all words, on a page or in the elements of a selector."""

    story: int = 0
    all: int = 0


@dataclass(frozen=True, slots=True)
class _TextNode:
    """A text of a page: its words, the selectors of its ancestors from the outermost on, and whether it is a link."""

    text: str
    words: int
    selectors: tuple[str, ...]
    is_navigation: bool


@dataclass(slots=True)
class _Survey:
    """How well each selector fits each page, and how deep its elements are."""

    scores: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    depths: dict[str, int] = field(default_factory=dict)


def propose_body(pages: Sequence[Page]) -> str:
    """The selectors that hold the stories of these pages, joined by commas; "" for the whole page."""
    texts = [nodes for page in pages if (nodes := _texts(page))]
    survey = _survey(texts)
    whole = survey.scores.pop(WHOLE, {})
    remaining = {n: max(scores.get(n, 0.0) for scores in (whole, *survey.scores.values())) for n in whole}
    chosen: list[str] = []
    while remaining and survey.scores and len(chosen) < MOST_SELECTORS:
        best = _best(survey, remaining)
        chosen.append(best)
        scores = survey.scores[best]
        remaining = {n: most for n, most in remaining.items() if scores.get(n, 0.0) < LEAST_SCORE * most}
    return "" if remaining else ", ".join(chosen)  # a page that matches no selector would be skipped


def _best(survey: _Survey, pages: Iterable[int]) -> str:
    """The selector with the highest sum of scores on these pages; of nearly equal ones the innermost."""
    totals = {one: sum(scores.get(n, 0.0) for n in pages) for one, scores in survey.scores.items()}
    enough = max(totals.values()) * (1 - TOLERANCE)
    nearly_best = [one for one, total in totals.items() if total >= enough]
    return max(nearly_best, key=lambda one: (survey.depths[one], totals[one], one))


def _survey(pages: Sequence[Sequence[_TextNode]]) -> _Survey:
    survey = _Survey()
    on_pages = Counter(text for nodes in pages for text in {node.text for node in nodes})
    most = max(1 if len(pages) <= FEW_PAGES else 2, int(MOST_PAGES * len(pages)))
    for n, nodes in enumerate(pages):
        page, held = _Words(), defaultdict[str, _Words](_Words)
        for node in nodes:
            story = 0 if node.is_navigation or on_pages[node.text] > most else node.words
            for depth, selector in enumerate(node.selectors):
                survey.depths[selector] = max(survey.depths.get(selector, 0), depth)
            for words in (page, *(held[one] for one in set(node.selectors))):
                words.story += story
                words.all += node.words
        for selector, words in held.items():
            if words.story:
                survey.scores[selector][n] = (words.story / page.story) * (words.story / words.all)
    return survey


def _texts(page: Page) -> list[_TextNode]:
    """The visible texts of a page; none if it is no text."""
    try:
        root = LexborHTMLParser(decode(page.body, page.content_type)).body
    except NoStoryText:
        return []
    found: list[_TextNode] = []
    pending: list[tuple[LexborNode, tuple[str, ...], bool]] = [(root, (), False)] if root is not None else []
    for _ in range(MOST_ELEMENTS):
        if not pending:
            break
        node, selectors, is_navigation = pending.pop()
        if node.tag == "-text":
            text = " ".join((node.text_content or "").split())
            if text:
                found.append(_TextNode(text, len(text.split()), selectors, is_navigation))
        elif node.tag_id not in INVISIBLE:
            inner = selectors + tuple(one for one in _selectors(node) if one not in selectors)
            is_inside = is_navigation or node.tag in NAVIGATION
            pending += [(child, inner, is_inside) for child in node.iter(include_text=True)]
    return found


def _selectors(node: LexborNode) -> list[str]:
    """The selectors of one element, the plainest first; none for paragraphs and what they contain."""
    if node.tag not in CONTAINERS:
        return []
    attributes = node.attributes
    classes = [one for one in (attributes.get("class") or "").split() if PLAIN_NAME.fullmatch(one)]
    own_id = attributes.get("id") or ""
    by_id = [f"#{own_id}"] if PLAIN_NAME.fullmatch(own_id) else []
    plain = [node.tag] if node.tag in ("body", "main", "article") else []
    return [*plain, *by_id, *(f"{node.tag}.{one}" for one in classes)]
