"""Which part of a page is the story."""

from collections.abc import Sequence

from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser, SelectolaxError


class Extraction(Struct, frozen=True):
    """The part of a page that is the story: a CSS selector ("" for the whole body), and selectors to remove."""

    body: str = ""
    strip: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Raises ValueError for a selector that does not parse."""
        empty = LexborHTMLParser("<p>")
        for selector in filter(None, (self.body, *self.strip)):
            try:
                empty.css(selector)
            except SelectolaxError as error:
                raise ValueError(f"not a CSS selector: {selector!r}") from error
