"""[extract]: which part of a page is the story."""

from typing import Self

from pydantic import Field, model_validator

from neardup.config.section import Section
from neardup.core.text.extraction import Extraction


class Extract(Section):
    """[extract]: which part of a page is the story."""

    body: str = Field(
        default="", description="CSS selector of the elements that contain the story. Empty means the whole page."
    )
    strip: tuple[str, ...] = Field(
        default=(), description="CSS selectors of elements to remove from the story, such as share buttons."
    )

    @model_validator(mode="after")
    def _parses(self) -> Self:
        Extraction(self.body, self.strip)
        return self
