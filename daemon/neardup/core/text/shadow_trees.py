"""Shadow trees that stand in the markup of a page, and the children of their hosts, which stand in their slots."""

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from selectolax.lexbor import LexborNode

Page = TypeVar("Page")


class Host(NamedTuple, Generic[Page]):
    """The children of an element with a shadow tree, their page, and the names of the slots that they stand in."""

    children: list[LexborNode]
    page: Page
    filled: set[str]

    def in_slot(self, name: str) -> list[LexborNode]:
        """The children in the first slot of this name; none for a later one."""
        if name in self.filled:
            return []
        self.filled.add(name)
        return [child for child in self.children if _slot_of(child) == name]


def _slot_of(child: LexborNode) -> str:
    return child.attributes.get("slot") or "" if child.is_element_node else ""


def shadow_among(children: Iterable[LexborNode]) -> LexborNode | None:
    """The template that is the shadow tree of the parent of these children; None if there is none."""
    return next((one for one in children if one.tag == "template" and "shadowrootmode" in one.attributes), None)


def markup_of(template: LexborNode) -> str:
    return template.template_fragments()[0].inner_html or ""
