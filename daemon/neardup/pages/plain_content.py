"""The settings of a page store as plain values, so that reader processes load no configuration."""

from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

if TYPE_CHECKING:
    from neardup.config import Content


class PlainContent(NamedTuple):
    """What a store of pages needs of [content] or of the content of [reference]; see `neardup.config.Content`."""

    section: str
    url: str
    key: str
    endpoint: str | None
    region: str | None
    path_style: bool
    max_bytes: int

    @classmethod
    def of(cls, content: "AnyContent") -> Self:
        return cls(*(getattr(content, name) for name in cls._fields))


AnyContent: TypeAlias = "Content | PlainContent"
