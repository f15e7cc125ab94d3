"""[extract]: which part of a page is the story."""

from typing import Annotated

from msgspec import Meta

from neardup.config.section import Section
from neardup.core.text.extraction import Extraction


class Extract(Section, frozen=True, kw_only=True):
    """[extract]: which part of a page is the story."""

    body: Annotated[
        str, Meta(description="CSS selector of the elements that contain the story. Empty means the whole page.")
    ] = ""
    strip: Annotated[
        tuple[str, ...], Meta(description="CSS selectors of elements to remove from the story, such as share buttons.")
    ] = ()

    def __post_init__(self) -> None:
        Extraction(self.body, self.strip)
