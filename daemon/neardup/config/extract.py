"""[extract]: which part of a page is the story."""

from neardup.config.section import Section, setting
from neardup.core.text.extraction import Extraction


class Extract(Section):
    """[extract]: which part of a page is the story."""

    body: str = setting(
        default="", description="CSS selector of the elements that contain the story. Empty means the whole page."
    )
    strip: tuple[str, ...] = setting(
        default=(), description="CSS selectors of elements to remove from the story, such as share buttons."
    )

    def check(self) -> None:
        Extraction(self.body, self.strip)
