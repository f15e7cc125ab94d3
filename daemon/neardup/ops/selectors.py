"""Proposes CSS selectors for the story on the pages of a site, and for what to remove from it, from a few of its pages.

The story is the text that differs from page to page and stands in no link, menu or form.  A selector is the better the
more of that text it holds, and the less other text.  Pages of several designs may need a selector each.  What is
removed are boxes inside stories that say the same on page after page, such as share buttons.
"""

import os
import re
import socket
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from random import Random
from typing import NamedTuple

from msgspec import Struct, field
from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.config import Config, Content
from neardup.core.page import Page
from neardup.core.text.decoding import NoStoryText, decode
from neardup.core.text.scripts import UnknownScript, guess_language
from neardup.core.text.story import INVISIBLE
from neardup.errors import Fatal, NeardupError
from neardup.pages.store import Pages, make_path, open_transfers
from neardup.records import BadRow, Language, Story
from neardup.source import list_rows
from neardup.source.listings import SAMPLE_BYTES, extract_prose, open_source

PAGES = 20
ROWS = 500_000  # of the listing, among which the pages are chosen; more would take more than 4 s
SEED = 1

PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)  # of a class or an id that needs no escapes
MOST_ELEMENTS = 20_000  # of a page that is examined
MOST_PAGES = 0.3  # text on more than this share of the pages is not a story's; some stories are copies of others
FEW_PAGES = 4  # with so few, a text on two of them is not a story's
LEAST_SCORE = 0.5  # as a share of the best score on a page
WHOLE = "body"
MOST_SELECTORS = 3
# A selector that is tighter than another may hold this much less: bylines and dates differ from page to page too.
TOLERANCE = 0.03
CONTAINERS = frozenset(["article", "blockquote", "body", "div", "main", "section", "td"])
NAVIGATION = frozenset(["a", "nav", "header", "footer", "aside", "form", "button", "label"])
LEAST_REPEATS = 2  # that a box needs: pages on which it says again what it says on others
LEAST_SHARE = 0.1  # the same as a share of all pages, small because a site may have several templates
LEAST_CHROME_SHARE = 0.5  # of the pages of a folder, on which its chrome stands
LEAST_CHROME_PAGES = 5  # of a folder; fewer do not show what is its chrome
BOXES = frozenset(["nav", "header", "footer", "aside", "form", "button"])  # selected by their tag too


class SamplePage(NamedTuple):
    """A page, and the language that the listing gives it."""

    language: Language
    page: Page


async def sample_pages(config: Config) -> list[SamplePage]:
    """The pages of a few of the first ROWS stories of the listing, at random; those that cannot be read are left out.

    Raises Fatal for a listing without a usable row, or if no page can be read, with the reason of the first.
    """
    read = list(_read(config.content, await _sample(config)))
    pages = [page for page in read if isinstance(page, SamplePage)]
    failures = [page for page in read if isinstance(page, NeardupError)]
    if failures and not pages:
        raise Fatal(f"none of {len(read)} pages could be read: {failures[0]}")
    return pages


async def _sample(config: Config) -> list[Story]:
    """A few of the first ROWS stories of the listing, each as likely as any other of these.

    A listing is often sorted, by template for example.  Algorithm R: Vitter, "Random sampling with a reservoir" (1985).
    """
    chosen, stories, reason, random = list[Story](), 0, "it has no rows", Random(SEED)  # noqa: S311 - not for security
    async with aclosing(list_rows(open_source(config))) as rows:  # type: ignore[type-var]
        async for row in rows:
            if isinstance(row, BadRow):
                reason = str(row.error)
            elif isinstance(row, Story):
                stories += 1
                if len(chosen) < PAGES:
                    chosen.append(row)
                elif (place := random.randrange(stories)) < PAGES:
                    chosen[place] = row
                if stories == ROWS:
                    break
    if not chosen:
        raise Fatal(f"the listing has no usable row: {reason}")
    return chosen


def _read(content: Content, stories: Sequence[Story]) -> Iterator[SamplePage | NeardupError]:
    """The pages of these stories, or why they cannot be read, in any order."""
    store, languages = Pages(content), dict[object, Language]()
    control, other = socket.socketpair()
    with closing(control), closing(other):
        transfers = open_transfers([content], control.fileno())
        for story in stories:
            try:
                get = store.begin(make_path(content, story))
            except NeardupError as error:
                yield error
            else:
                languages[get] = story.language
                transfers.begin(get)
        while transfers.under_way:
            transfers.advance(wait=True)
            while finished := transfers.pop_finished():
                try:
                    page = store.read_page(finished)
                except NeardupError as error:
                    yield error
                else:
                    assert page is not None  # without an ETag a page is always returned
                    yield SamplePage(languages[finished], page)


class _Words(Struct):
    """The numbers of words of a story and of all words, on a page or in the elements of a selector."""

    story: int = 0
    all: int = 0


class _TextNode(Struct, frozen=True):
    """A text of a page: its words, the selectors of its ancestors from the outermost on, and whether it is navigation.

    Navigation stands in a link, a menu or a form.
    """

    text: str
    words: int
    selectors: tuple[str, ...]
    is_navigation: bool


class _Survey(Struct):
    """How well each selector fits each page, and how deep its elements are."""

    scores: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    depths: dict[str, int] = field(default_factory=dict)


def propose_body(pages: Sequence[Page]) -> str:
    """The selectors that hold the stories of these pages, joined by commas; "" for the whole page."""
    texts = [nodes for page in pages if (nodes := _list_text_nodes(page))]
    survey = _survey_pages(texts)
    whole = survey.scores.pop(WHOLE, {})
    remaining = {n: max(scores.get(n, 0.0) for scores in (whole, *survey.scores.values())) for n in whole}
    chosen: list[str] = []
    while remaining and survey.scores and len(chosen) < MOST_SELECTORS:
        best = _choose_best(survey, remaining)
        chosen.append(best)
        scores = survey.scores[best]
        remaining = {n: most for n, most in remaining.items() if scores.get(n, 0.0) < LEAST_SCORE * most}
    return "" if remaining else ", ".join(chosen)  # a page that matches no selector would be skipped


def _choose_best(survey: _Survey, pages: Iterable[int]) -> str:
    """The selector with the highest sum of scores on these pages; of nearly equal ones the innermost."""
    totals = {selector: sum(scores.get(n, 0.0) for n in pages) for selector, scores in survey.scores.items()}
    enough = max(totals.values()) * (1 - TOLERANCE)
    nearly_best = [selector for selector, total in totals.items() if total >= enough]
    return max(nearly_best, key=lambda selector: (survey.depths[selector], totals[selector], selector))


def _survey_pages(pages: Sequence[Sequence[_TextNode]]) -> _Survey:
    survey = _Survey()
    on_pages = Counter(text for nodes in pages for text in {node.text for node in nodes})
    most = max(1 if len(pages) <= FEW_PAGES else 2, int(MOST_PAGES * len(pages)))
    for n, nodes in enumerate(pages):
        page, held = _Words(), defaultdict[str, _Words](_Words)
        for node in nodes:
            story = 0 if node.is_navigation or on_pages[node.text] > most else node.words
            for depth, selector in enumerate(node.selectors):
                survey.depths[selector] = max(survey.depths.get(selector, 0), depth)
            for words in (page, *(held[selector] for selector in set(node.selectors))):
                words.story += story
                words.all += node.words
        for selector, words in held.items():
            if words.story:
                survey.scores[selector][n] = (words.story / page.story) * (words.story / words.all)
    return survey


def _list_text_nodes(page: Page) -> list[_TextNode]:
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
            inner = selectors + tuple(
                selector for selector in _list_container_selectors(node) if selector not in selectors
            )
            is_inside = is_navigation or node.tag in NAVIGATION
            pending += [(child, inner, is_inside) for child in node.iter(include_text=True)]
    return found


def _list_container_selectors(node: LexborNode) -> list[str]:
    """The selectors of one element, the plainest first; none for paragraphs and what they contain."""
    if node.tag not in CONTAINERS:
        return []
    by_class, by_id = _list_plain_selectors(node)
    by_tag = [node.tag] if node.tag in ("body", "main", "article") else []
    return [*by_tag, *by_id, *(f"{node.tag}{selector}" for selector in by_class)]


def _list_plain_selectors(node: LexborNode) -> tuple[list[str], list[str]]:
    """The selectors of an element by its classes and by its id, of those whose names need no escapes."""
    classes, own_id = (node.attributes.get("class") or "").split(), node.attributes.get("id") or ""
    by_class = [f".{name}" for name in classes if PLAIN_NAME.fullmatch(name)]
    return by_class, [f"#{own_id}"] if PLAIN_NAME.fullmatch(own_id) else []


def propose_strip(
    pages: Sequence[tuple[Language, Page]], body: str, least_share: float = LEAST_SHARE
) -> tuple[str, ...]:
    """Selectors of what stands inside stories of these pages and says the same on all pages of a language that have it.

    `body` selects the stories; "" means that they are the whole pages.  At least `least_share` of the pages repeat it.
    """
    stories = [(language, found) for language, page in pages if (found := _find_stories(page, body))]
    said = defaultdict[str, list[tuple[Language, str]]](list)  # by selector: what its elements say, page by page
    for language, story in stories:
        for selector, text in _read_box_texts(story).items():
            said[selector].append((language, text))
    least = max(LEAST_REPEATS, least_share * len(pages))
    repeated = {selector for selector, texts in said.items() if _count_repeats(texts) >= least}
    return tuple(dict.fromkeys(selector for _, story in stories for selector in _find_outermost(story, repeated)))


def propose_chrome(files: Sequence[Path]) -> tuple[str, ...]:
    """Selectors of what most of these pages share, such as menus; none if it may be the stories that they share.

    So it is if there are few different pages, or if most of their text would be left out.
    """
    chosen = Random(SEED).sample(files, min(PAGES, len(files)))  # noqa: S311 - not for security
    markups = {markup for file in chosen if (markup := _read_beginning(file)) is not None}
    pages = [(language, Page(markup)) for markup in sorted(markups) if (language := _guess(markup)) is not None]
    if len(pages) < LEAST_CHROME_PAGES or not (strip := propose_strip(pages, "", LEAST_CHROME_SHARE)):
        return ()
    lengths = [(_measure_length(page, ()), _measure_length(page, strip)) for _, page in pages]
    return tuple(sorted(strip)) if 2 * sum(left for _, left in lengths) > sum(whole for whole, _ in lengths) else ()


def _read_beginning(file: Path) -> bytes | None:
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as opened:  # a pipe would block
            return opened.read(SAMPLE_BYTES)
    except OSError:
        return None


def _guess(markup: bytes) -> Language | None:
    try:
        return guess_language(extract_prose(markup)).language
    except (NoStoryText, UnknownScript):
        return None


def _measure_length(page: Page, strip: Collection[str]) -> int:
    """The length of a page's text in characters, without what these selectors match."""
    parser = LexborHTMLParser(decode(page.body, page.content_type))
    parser.strip_tags(["head", "script", "style"])
    for node in parser.css(", ".join(strip)) if strip else ():
        node.decompose()
    return len("".join(parser.text().split()))


def _count_repeats(texts: Sequence[tuple[Language, str]]) -> int:
    """How many pages repeat the text of another; 0 where two pages of a language differ, or nothing is said."""
    languages, different = {language for language, _ in texts}, set(texts)
    return len(texts) - len(languages) if len(different) == len(languages) and any(text for _, text in texts) else 0


def _find_stories(page: Page, body: str) -> list[LexborNode]:
    """The elements of a page that are its story; none if it is no text."""
    try:
        root = LexborHTMLParser(decode(page.body, page.content_type)).root
    except NoStoryText:
        return []
    return [] if root is None else root.css(body or "body")


def _read_box_texts(story: Sequence[LexborNode]) -> dict[str, str]:
    """What the elements of each selector say on a page, without spaces."""
    texts = defaultdict[str, str](str)
    for node in _list_elements(story):
        for selector in _list_box_selectors(node):
            texts[selector] += "".join(node.text_lexbor().split())
    return texts


def _find_outermost(story: Sequence[LexborNode], selectors: set[str]) -> Iterator[str]:
    """One of these selectors for each element that has any, and is in no other such element."""
    for node in _list_elements(story, selectors):
        yield from [selector for selector in _list_box_selectors(node) if selector in selectors][:1]


def _list_elements(story: Sequence[LexborNode], closed: Collection[str] = ()) -> Iterator[LexborNode]:
    """The elements inside a story, but for those inside one that a selector of `closed` matches."""
    pending = [child for node in reversed(story) for child in node.iter()]
    for _ in range(MOST_ELEMENTS):
        if not pending:
            break
        yield (node := pending.pop())
        if not closed or not any(selector in closed for selector in _list_box_selectors(node)):
            pending += node.iter()


def _list_box_selectors(node: LexborNode) -> list[str]:
    by_class, by_id = _list_plain_selectors(node)
    return [*by_class, *by_id, *([node.tag] if node.tag in BOXES else [])]
