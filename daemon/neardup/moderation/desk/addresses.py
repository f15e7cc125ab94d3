"""The addresses of the desk: a story stands in them by its id in the listing, whether that is an integer or a name.

An id is percent-encoded, so that a slash in it is no step between folders.  Proxies refuse addresses of more than about
8,000 bytes: stories with a very long name stand in addresses by the integer that is made from the name, which is
accepted everywhere.
"""

from aiohttp import web

from neardup.records import ShownId
from neardup.source.parse import make_printable, parse_id, quote_id

Pair = tuple[int, int]  # the lower integer first
ShownPair = tuple[ShownId, ShownId]
LONGEST = 2_000  # bytes of an id; an address has at most two
STORY, PAIR, AUTHOR = "{story:[^/]+}", "{a:[^/]+}/{b:[^/]+}", "{author:[^/]+}"  # in the paths of routes


def quote_shown_id(shown: ShownId) -> str:
    """The id of a story as a segment of a path, or as a value of a query."""
    quoted = quote_id(str(shown))
    return str(parse_id(str(shown))) if len(quoted) > LONGEST else quoted


def make_story_url(shown: ShownId) -> str:
    """The address of a story's page."""
    return f"/story/{quote_shown_id(shown)}"


def make_case_url(shown: ShownId) -> str:
    """The address of the case with this id, which is that of one of its stories."""
    return f"/case/{quote_shown_id(shown)}"


def make_pair_url(first: ShownId, second: ShownId, page: str = "pair") -> str:
    """The address of the page of two stories, given in any order: `pair`, `meaning` or `serials`."""
    a, b = sorted((first, second), key=lambda shown: parse_id(str(shown)))
    return f"/{page}/{quote_shown_id(a)}/{quote_shown_id(b)}"


def make_author_url(author_id: str) -> str:
    """The address of an author's page."""
    return f"/author/{quote_id(author_id)}"


def read_author_id(request: web.Request) -> str:
    """The author in the path.  Raises HTTPNotFound."""
    author_id = make_printable(request.match_info["author"])
    if author_id is None:
        raise web.HTTPNotFound
    return author_id


def read_story_id(request: web.Request) -> int:
    """The story in the path.  Raises HTTPNotFound."""
    try:
        return parse_id(request.match_info["story"])
    except ValueError:
        raise web.HTTPNotFound from None


def read_pair(request: web.Request) -> Pair:
    """The pair in the path, the lower integer first.  Raises HTTPNotFound."""
    try:
        a, b = sorted(parse_id(request.match_info[name]) for name in "ab")
    except ValueError:
        raise web.HTTPNotFound from None
    return a, b


def find_page_of_form(request: web.Request) -> str:
    """The address of the page whose form was posted to this path, which has the action as its last segment."""
    return request.rel_url.raw_path.rpartition("/")[0]
