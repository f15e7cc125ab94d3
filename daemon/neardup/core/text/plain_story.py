"""Reads the story of a page by the native core, where a browser shows it as it is written."""

from collections.abc import Sequence

import numpy as np
from selectolax.lexbor import LexborNode

from neardup.core.native.page import (
    SHEETS,
    STYLE_AROUND,
    WHY_UNREAD,
    Rules,
    StoryRead,
    TagClass,
    read_story,
)
from neardup.core.text.css import declarations
from neardup.core.text.page_styles import act_nowhere, act_on, style_sheets
from neardup.core.text.story_elements import (
    ANNOTATIONS,
    ATTRIBUTED,
    BREAKS,
    FRAMES,
    INVISIBLE,
    LINKS,
    LISTS,
    LONG_ATTRIBUTE,
    LONG_LIST,
    MOST_ANNOTATIONS,
    PECULIAR,
    STYLES,
    SUPERSCRIPT,
    acting_attribute,
    around,
)

CLASSES = {
    TagClass.BREAK: BREAKS, TagClass.INVISIBLE: INVISIBLE, TagClass.PECULIAR: PECULIAR, TagClass.ATTRIBUTED: ATTRIBUTED,
    TagClass.ANNOTATION: ANNOTATIONS, TagClass.FRAME: FRAMES - LISTS, TagClass.LIST: LISTS, TagClass.STYLE: STYLES,
    TagClass.SUPERSCRIPT: SUPERSCRIPT, TagClass.LINK: LINKS,
}  # fmt: skip


def _rules() -> Rules:
    tags = np.zeros(max(map(max, CLASSES.values())) + 1, np.uint16)
    for tag_class, ids in CLASSES.items():
        tags[list(ids)] |= np.uint16(tag_class)
    return Rules(tags, MOST_ANNOTATIONS, LONG_ATTRIBUTE, LONG_LIST)


RULES = _rules()


def read_plain_story(root: LexborNode, bodies: Sequence[LexborNode], html: bytes) -> StoryRead | None:
    """The story in the elements `bodies` of the page `html`; None for one that Python must read, or perhaps render."""
    if WHY_UNREAD is not None:
        return None

    def may_hide(kind: str, value: bytes) -> bool:
        if kind == SHEETS:
            return not act_nowhere(style_sheets(root))
        if kind == STYLE_AROUND:
            return declarations(value.decode()).acts_around
        return acting_attribute({kind: value.decode()}) is not None

    story = read_story(root, bodies, len(html), RULES, may_hide)
    if not isinstance(story, StoryRead):
        return None
    if story.has_acting_sheets and act_on(style_sheets(root), root, bodies, around(bodies), html):
        return None
    return story
