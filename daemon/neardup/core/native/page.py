"""Binds `page.c`: a page that selectolax parsed -> the visible text of its story.

The library reads selectolax's tree by functions of lexbor, which selectolax's own library exports, so that neither has
to be built for the other.  A canary page is read first.  Where that fails, because selectolax or the platform is
another one, `WHY_UNUSABLE` says so, and the reference reads all pages.
"""

import ctypes
import threading
from array import array
from collections.abc import Callable, Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import selectolax
from selectolax import lexbor
from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.native import ROOM, WHY_MISSING, address, bind, check_code, list_fields
from neardup.core.native.fingerprint import CharacterCounts, CountMemory

# The fields of nd_lexbor, and what lexbor calls them.
FUNCTIONS = {
    "first_child": "lxb_dom_node_first_child_noi",
    "next": "lxb_dom_node_next_noi",
    "parent": "lxb_dom_node_parent_noi",
    "type": "lxb_dom_node_type_noi",
    "tag": "lxb_dom_node_tag_id_noi",
    "text": "lxb_dom_node_text_content",
    "free_text": "lxb_dom_document_destroy_text_noi",
    "first_attribute": "lxb_dom_element_first_attribute_noi",
    "next_attribute": "lxb_dom_element_next_attribute_noi",
    "name": "lxb_dom_attr_local_name_noi",
    "value": "lxb_dom_attr_value_noi",
    "qualified_name": "lxb_dom_element_qualified_name",
}
PARSE = "lxb_html_document_parse"
VERDICT_BYTES, MOST_UNJUDGED = 1 << 20, 32
ROOM_PER_BYTE, SPARE_ROOM = 3, 1024
KEPT_ROOM = 1 << 22  # bytes that a thread keeps between two pages
MOST_ROUNDS = 8  # of judging; a page that needs more has hundreds of styles of its own


class TagClass(IntEnum):
    """The classes of tags, as nd_tag_class."""

    BREAK, INVISIBLE, PECULIAR, ATTRIBUTED, ANNOTATION, FRAME, LIST, STYLE, SUPERSCRIPT, LINK = (
        1 << n for n in range(10)
    )
    IN_PARTS, PARTED, HOST, FIELD = (1 << n for n in range(10, 14))


class Doubt(IntEnum):
    """Why only the reference can extract the text of a story, as nd_doubt."""

    NONE, UNJUDGED, STYLED, HIDDEN, PECULIAR_TAG, PAGE_WITHIN, LONG_TEXT, ANNOTATED = range(8)
    UNSEEN_STORY, LARGE, UNREADABLE = range(8, 11)


STYLE_AROUND, SHEETS = "style around", "sheets"
KINDS = ("style", "bgcolor", "color", "text", "dir", STYLE_AROUND, SHEETS)  # as nd_kind
# Whether a value of one of KINDS may hide a text.
Judge = Callable[[str, bytes], bool]


class _Lexbor(ctypes.Structure):
    _fields_ = list_fields(" ".join(f"*{name}" for name in FUNCTIONS))


class _Page(ctypes.Structure):
    _fields_ = list_fields("*root bodies[] tags[] most_annotations long_attribute long_list", ctypes.c_uint64)


STORY, _UNJUDGED = Struct("=5Q"), Struct("=3Q")  # the first fields of nd_story, and those of nd_unjudged
STORY_BYTES = STORY.size + MOST_UNJUDGED * _UNJUDGED.size
_read_story = bind(
    "nd_read_story",
    *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t),
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p),
)
_learn = bind(
    "nd_learn", *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64)
)
_spaced_text = bind(
    "nd_spaced_text", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
)
_is_plain = bind("nd_is_plain", ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64)


class StoryRead(NamedTuple):
    """The text of a story, in UTF-8, and the counts of its characters.

    If the page `has_acting_sheets`, the caller decides whether these act on the story.
    """

    text: bytes
    counts: CharacterCounts
    has_acting_sheets: bool


class TagRules:
    """What may hide or be a text: the classes of each tag, by its `tag_id`, and lengths in characters."""

    def __init__(
        self, tags: npt.NDArray[np.uint16], most_annotations: int, long_attribute: int, long_list: int
    ) -> None:
        self._tags = tags  # held, because `fields` has its address
        self.fields = address(tags, np.uint16), len(tags), most_annotations, long_attribute, long_list


class _Memory(threading.local):
    """What a thread uses for one page after another: verdicts, room, and what was found."""

    def __init__(self) -> None:
        self.verdicts = np.zeros(VERDICT_BYTES, np.uint8)
        self.room = np.empty(KEPT_ROOM, np.uint8)
        self.counts = CountMemory()
        self.story = np.zeros(STORY_BYTES, np.uint8)
        self.visible = np.zeros(1, np.uint64)
        self.verdicts_at, self.room_at, self.story_at = (
            address(memory, np.uint8) for memory in (self.verdicts, self.room, self.story)
        )
        self.visible_at = address(self.visible, np.uint64)

    def learn(self, kind: int, value: bytes, *, may_hide: bool) -> None:
        """Remember a verdict; what is remembered is forgotten if there is no room for it."""
        if not learn_verdict(self.verdicts_at, kind, value, may_hide):
            self.verdicts.fill(0)
            learn_verdict(self.verdicts_at, kind, value, may_hide)


def learn_verdict(memory_at: int, kind: int, value: bytes, verdict: int) -> bool:
    """Remember a verdict on a value in a memory of VERDICT_BYTES; False if there is no room for it."""
    return check_code(_learn(memory_at, VERDICT_BYTES, kind, value, len(value), verdict)) != ROOM


_memory = _Memory()
_lexbor = _Lexbor()
_parse: Callable[..., int]
_parent: Callable[..., int]
_name: Callable[..., bytes]


def read_story(
    root: LexborNode, bodies: Sequence[LexborNode], page_bytes: int, rules: TagRules, judge: Judge
) -> StoryRead | Doubt:
    """The elements that are the story of a page of so many bytes -> its text, with line breaks between blocks.

    `judge` is asked about each value once, as long as it is remembered.
    """
    memory, room_bytes = _memory, ROOM_PER_BYTE * page_bytes + SPARE_ROOM
    room_at, room = memory.room_at, memory.room
    if room_bytes > KEPT_ROOM:
        room = np.empty(room_bytes, np.uint8)
        room_at = address(room, np.uint8)
    ids = array("Q", [body.mem_id for body in bodies])
    page = _Page(root.mem_id, ids.buffer_info()[0], len(ids), *rules.fields)
    arguments = memory.verdicts_at, VERDICT_BYTES, room_at, len(room), *memory.counts.at, memory.story_at
    for _ in range(MOST_ROUNDS):
        size = check_code(_read_story(ctypes.byref(_lexbor), ctypes.byref(page), *arguments))
        text, characters, has_acting_sheets, doubt, unjudged = STORY.unpack_from(memory.story.data)
        if size >= 0:
            return StoryRead(ctypes.string_at(text, size), memory.counts.get_counts(characters), has_acting_sheets == 1)
        if doubt != Doubt.UNJUDGED:
            return Doubt(doubt)
        for kind, value in list_unjudged(memory.story, unjudged):
            learn_judged(kind, value, judge)
    return Doubt.UNJUDGED


def list_unjudged(story: npt.NDArray[np.uint8], count: int) -> list[tuple[int, bytes]]:
    """The number of the kind of each value that is to be judged, and the value; they follow the fields of nd_story."""
    fields = (_UNJUDGED.unpack_from(story.data, STORY.size + n * _UNJUDGED.size) for n in range(count))
    return [(kind, ctypes.string_at(at, size)) for at, size, kind in fields]


def learn_judged(kind: int, value: bytes, judge: Judge) -> None:
    """Remember what `judge` says of a value, by the number of its kind."""
    _memory.learn(kind, value, may_hide=judge(KINDS[kind], value))


def call_lexbor(
    function: Callable[..., int],
    root: LexborNode,
    rules: TagRules,
    sheets: ctypes.Structure,
    frames: ctypes.Structure,
    *rest: int,
) -> int:
    """What nd_render returns for a page, all of which is the story."""
    ids = array("Q", [root.mem_id])
    page = _Page(root.mem_id, ids.buffer_info()[0], len(ids), *rules.fields)
    by_reference = (ctypes.byref(structure) for structure in (_lexbor, page, sheets, frames))
    return check_code(function(*by_reference, _memory.verdicts_at, VERDICT_BYTES, *rest))


def read_spaced_text(element: LexborNode) -> tuple[str, int] | None:
    """See core.css.pieces.read_spaced_text; None for a text that is too long, or not Unicode."""
    memory = _memory
    room = memory.room_at, KEPT_ROOM
    size = check_code(_spaced_text(ctypes.byref(_lexbor), element.mem_id, *room, memory.visible_at))
    if size == ROOM:
        return None
    try:
        return ctypes.string_at(memory.room_at, size).decode(), memory.visible.item()
    except UnicodeDecodeError:
        return None


class KeptParser:
    """A parser whose memory is used for one page after another, since making one takes as long as parsing 50 KB.

    Lexbor never leaves the quirks mode, so a page without a doctype needs another parser than one with the usual one.
    """

    def __init__(self, doctype: str, *, scripting: bool) -> None:
        self._parser = LexborHTMLParser(doctype, scripting=scripting)
        root = self._parser.root
        self._document = 0 if root is None else _parent(root.mem_id)

    def parse(self, page: bytes) -> LexborNode | None:
        """The root of a page, as of core.text.parsing; its nodes are gone when the next page is parsed."""
        return self._parser.root if _parse(self._document, page, len(page)) == 0 else None


def is_plain_page(page: bytes, most_tags: int) -> bool:
    """See core.text.decoding.is_plain."""
    return _is_plain(page, len(page), most_tags) == 1


CANARY = (
    "<title>t</title><style media=screen>p { margin: 0 }</style><p style='color: #222'>क<b>ख</b><sup>1</sup>&amp;"
    "<!-- c --><br>d</p><div style='margin: 0'><p id=x>f<b dir=ltr style>g</b></p></div><script>s</script>h"
)
CANARY_TEXTS = "\nकख&\n\nd\n\n\nfg\n\nh", "fg"  # of the page, and of one element
CANARY_VALUES = {
    *(
        ("style", b"color: #222"),
        ("style", b"margin: 0"),
        ("style", b""),
        ("dir", b"ltr"),
        (STYLE_AROUND, b"margin: 0"),
        (SHEETS, b"media\0screen\0\1p { margin: 0 }\0"),
    )
}
CANARY_TAGS = {
    "p div br": TagClass.BREAK, "title script": TagClass.INVISIBLE, "style": TagClass.INVISIBLE | TagClass.STYLE,
    "sup": TagClass.SUPERSCRIPT,
}  # fmt: skip


def _reads_canary() -> bool:
    """Whether the canary page is read as it should be."""
    root, judged = KeptParser("", scripting=True).parse(CANARY.encode()), set[tuple[str, bytes]]()
    if root is None:
        return False
    nodes, tags = LexborHTMLParser(""), np.zeros(256, np.uint16)
    for names, classes in CANARY_TAGS.items():
        tags[[nodes.create_node(name).tag_id for name in names.split()]] = classes

    def judge(kind: str, value: bytes) -> bool:
        judged.add((kind, value))
        return False

    stories = [
        read_story(root, bodies, len(CANARY.encode()), TagRules(tags, 1, 1, 1), judge)
        for bodies in ([root], root.css("#x"))
    ]
    texts = tuple(story.text.decode() for story in stories if isinstance(story, StoryRead))
    return texts == CANARY_TEXTS and judged == CANARY_VALUES and _name(root.mem_id, None) == b"html"


def load_functions() -> str | None:
    """Take lexbor's functions; returns why they cannot be used, if so."""
    if WHY_MISSING is not None:
        return WHY_MISSING
    global _parse, _parent, _name
    try:
        library = ctypes.CDLL(lexbor.__file__)
        for name, exported in FUNCTIONS.items():
            setattr(_lexbor, name, ctypes.cast(library[exported], ctypes.c_void_p).value)
        _parse, _parent, _name = library[PARSE], library[FUNCTIONS["parent"]], library[FUNCTIONS["qualified_name"]]
        _parse.restype, _parse.argtypes = ctypes.c_uint, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t)
        _parent.restype, _parent.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
        _name.restype, _name.argtypes = ctypes.c_char_p, (ctypes.c_void_p, ctypes.c_void_p)
    except (OSError, AttributeError) as error:
        reason = str(error)
    else:
        if _reads_canary():
            return None
        reason = "a page reads otherwise"
    return f"the native core cannot read what selectolax {selectolax.__version__} parses: {reason}"


WHY_UNUSABLE = load_functions()
