"""Renders most pages in the native core, which asks what elements show, once for elements that are alike.

What an element shows beside that which is within it, and the style that it hands down, are its frame.  They follow from
the style around it, its tag, the rules that match it, and the attributes that style it.  The native core finds these,
and asks for the frame.  A page in which something is rarer is left to `core.css.rendering`, the reference.
"""

import re
import threading
from collections import Counter
from collections.abc import Sequence
from struct import unpack_from
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from selectolax.lexbor import LexborHTMLParser, LexborNode

from neardup.core.css.cascade import MOST_MATCHES, Rules
from neardup.core.css.computed_style import (
    HIDDEN,
    NEVER_SHOWN,
    NOT_SHOWN,
    PERHAPS_SHOWN,
    Attributes,
    Layer,
    Style,
    Values,
    choose_layers_apart,
    covers,
    find_display,
)
from neardup.core.css.declarations import parse_declarations
from neardup.core.css.generated_text import WITHOUT_TEXT
from neardup.core.css.order import SIDES, find_order, find_position, is_reversed
from neardup.core.css.page_styles import MOST_WORK, StyleSheet
from neardup.core.css.pieces import Box, InlineBlock, Isolate, Low, Piece, Text, count_visible
from neardup.core.css.rendering import (
    SHOWN_IN_OTHER_WAYS,
    START,
    generate_text,
    make_frame,
    make_line_break,
    may_show_text,
    read_signs,
    turns_order,
)
from neardup.core.css.rendering import Frame as RenderedFrame
from neardup.core.native.fingerprint import CharacterCounts
from neardup.core.native.page import WHY_UNUSABLE
from neardup.core.native.rendering import (
    FRAME_KEY,
    LAYERS,
    Compound,
    Edge,
    Frame,
    FrameFlag,
    FrameMemory,
    Generated,
    Pieces,
    SheetRules,
    StyleFlag,
    Variant,
    render_pieces,
    write_pieces,
)
from neardup.core.text.parsing import find_matching
from neardup.core.text.story import RULES, find_acting_attribute

ACTS, MOVES = 1, 2  # of a rule: its declarations may change what is shown; they may move it
MOST_TAG_ID = 1_000  # of a tag that has the same number in every document
MOST_RULES = 16  # that are kept, each of all style sheets of a page
# A selector of tags, classes and ids that stand within each other; for others, the parser's engine finds the elements.
COMPOUND = r"(?:\*|[a-z][a-z0-9]*)?(?:[.#][a-z_][\w-]*)*"
PLAIN = re.compile(rf"(?=\S){COMPOUND}(?:(?:\s*>\s*|\s+)(?=[^\s>]){COMPOUND})*", re.IGNORECASE | re.ASCII)
PARTS = re.compile(r"\s*(>)\s*|\s+|([.#]?)([\w*-]+)", re.ASCII)
EDGES: dict[Piece | Low, Edge | None] = {
    "": None, "\n": Edge.BREAK, Text("\n", HIDDEN): Edge.HIDDEN_BREAK, InlineBlock.START: Edge.INLINE_START,
    InlineBlock.END: Edge.INLINE_END, Low.START: Edge.LOW_START, Low.END: Edge.LOW_END,
    Box.START: Edge.BOX_START, Box.END: Edge.BOX_END, Isolate.START: None, Isolate.END: None,
}  # fmt: skip
MOST_EDGES = 4  # at the start or the end of an element: each is a byte of 32 bits
PSEUDOS = ("marker", "before", "after")  # whose texts are shown, in their order
PICTURES = frozenset(("img", "source", "iframe"))  # show nothing within them
# The frame of such an element says what it shows; those of other tags of SHOWN_IN_OTHER_WAYS do not.
CLEAR = PICTURES | {"br", "wbr", "input", "textarea"} | NEVER_SHOWN | NOT_SHOWN


class RenderedUtf8(NamedTuple):
    """The text of a page, the share that is hidden, and the counts of its characters."""

    utf8: bytes
    hidden: float
    counts: CharacterCounts


class _PageRules(Struct, frozen=True):
    """The rules of style sheets; `found_apart` are those whose selectors the parser's engine looks for."""

    rules: Rules
    native: SheetRules
    found_apart: tuple[tuple[int, str], ...]


def render_natively(
    root: LexborNode, bodies: Sequence[LexborNode], sheets: Sequence[StyleSheet]
) -> RenderedUtf8 | None:
    """The text of a page, as `core.css.rendering.render` has it; None for one that this must render."""
    if WHY_UNUSABLE is not None or len(bodies) != 1 or bodies[0].mem_id != root.mem_id:
        return None
    page = _frames.get_rules(tuple(sheets))
    if not page.rules.is_whole or read_signs(root, page.rules.markers):
        return None

    def may_hide(kind: str, value: bytes) -> bool:
        return find_acting_attribute({kind: value.decode()}) is not None

    found = render_pieces(
        root, RULES, page.native, _find_matched(root, page), _frames.memory, judge=may_hide, answer=_frames.answer
    )
    if found is None:
        _frames.clear()
    return _frames.write(found) if isinstance(found, Pieces) else None


def _find_matched(root: LexborNode, page: _PageRules) -> npt.NDArray[np.uint64]:
    """The elements that some rules match, as `render_pieces` takes them."""
    pairs = {(node.mem_id, order) for order, selector in page.found_apart for node in find_matching(selector, root)}
    return np.array(sorted(pairs), np.uint64).reshape(-1, 2)


class _KnownFrames(threading.local):
    """The frames and styles that a thread gave the native core, by their numbers there."""

    def __init__(self) -> None:
        self.memory = FrameMemory()
        self._rules: dict[tuple[StyleSheet, ...], _PageRules] = {}
        self._rules_by_number: dict[int, Rules] = {}
        self._count = 0
        self.clear()

    def clear(self) -> None:
        self.memory.clear()
        self._styles: list[Style] = []
        self._numbers: dict[int, int] = {}  # of styles, by their ids
        self._layers: list[Layer] = []
        self._number_layer(HIDDEN)
        self._number_style(START)

    def get_rules(self, sheets: tuple[StyleSheet, ...]) -> _PageRules:
        if (found := self._rules.get(sheets)) is None:
            if len(self._rules) == MOST_RULES:
                self._rules.clear()
                self._rules_by_number.clear()
            self._count += 1
            found = self._rules[sheets] = _prepare_rules(Rules(sheets), self._count)
            self._rules_by_number[self._count] = found.rules
        return found

    def answer(self, kind: int, key: bytes) -> bool:
        """Give the native core what it asks for; False if there is no room for it."""
        return self._add_frame(key) if kind == FRAME_KEY else self._add_variant(*unpack_from("=2I", key))

    def write(self, pieces: Pieces) -> RenderedUtf8 | None:
        characters = Counter[Layer]()
        numbers = dict[Layer, int]()
        for number, count in pieces.characters:
            characters[self._layers[number]] = count
            numbers[self._layers[number]] = number
        shown = [number for layer, number in numbers.items() if layer != HIDDEN]
        apart = [[numbers[layer] for layer in layers] for layers in choose_layers_apart(characters)]
        written = write_pieces(pieces, [shown, *apart])
        if written is None:
            return None
        utf8, counts = written
        return RenderedUtf8(utf8, characters[HIDDEN] / max(1, characters.total()), counts)

    def _add_variant(self, number: int, kind: int) -> bool:
        style = self._styles[number]
        match kind:
            case Variant.COVERED:
                variant = style.doubt("covered")
            case Variant.CLIPPED:
                variant = style.doubt("clipped")
            case _:
                variant = style.enter_unseen_box()
        variant_number = self._number_style(variant)
        if variant_number is None:
            return False
        self.memory.add_variant(number, Variant(kind), variant_number)
        return True

    def _add_frame(self, key: bytes) -> bool:
        sheets, style, count = unpack_from("=3I", key)
        matched: tuple[int, ...] = unpack_from(f"={count}I", key, 12)
        tag, *pairs = key[12 + 4 * count : -1].decode().split("\0")
        attributes: Attributes = dict(zip(pairs[::2], pairs[1::2], strict=True))
        frame = self._find_frame(self._rules_by_number[sheets], self._styles[style], tag, matched, attributes)
        return frame is not None and self.memory.add_frame(key, frame)

    def _find_frame(
        self, rules: Rules, parent: Style, tag: str, matched: tuple[int, ...], attributes: Attributes
    ) -> Frame | None:
        """The frame of an element; None if there is no room for its style."""
        values = rules.find_cascaded_values(tag, matched, attributes, parent.custom)
        frame = make_frame(tag, attributes, values, parent, rules.looks, is_aside=shows_picture(values))
        display = find_display(tag, attributes, values)
        edges = _pack_edges(tag, frame, rules.looks.find_look(parent, values, display).style, display)
        flags = _find_inner_flags(tag, attributes, values, display) | _find_outer_flags(attributes, values)
        if edges is None:
            flags |= FrameFlag.UNCLEAR
        if frame.is_arranged:
            flags |= FrameFlag.ARRANGED
        pseudos = {rules.rules[order].pseudo for order in matched} - {""} if not flags & FrameFlag.CLOSED else set()
        if pseudos:
            flags |= FrameFlag.GENERATES
        declared = {
            name: rules.find_cascaded_values(tag, matched, {}, frame.style.custom, name)
            for name in PSEUDOS
            if name in pseudos
        }
        if "first-letter" in pseudos or any("attr(" in found.get("content", "") for found in declared.values()):
            flags |= FrameFlag.UNCLEAR
        texts = {name: generate_text(found, {}, frame.style) for name, found in declared.items()}
        generated = {name: self._describe_generated(text) for name, text in texts.items() if text is not None}
        if (number := self._number_style(frame.style)) is None or None in generated.values():
            return None
        before = [text for name, text in generated.items() if text is not None and name != "after"]
        after = [text for name, text in generated.items() if text is not None and name == "after"]
        return Frame(flags, number, *(edges or (0, 0)), before, after, find_order(values), *find_position(values))

    def _describe_generated(self, text: Text) -> Generated | None:
        """A generated text; None if there is no room for its layer."""
        layer = self._number_layer(text.layer)
        utf8 = text.text.encode(errors="replace")
        return None if layer is None else Generated(utf8, layer, text.takes_room, count_visible(text.text))

    def _number_style(self, style: Style) -> int | None:
        """The number of a style, which is given one when it is new; None if there is no room for it."""
        if (number := self._numbers.get(id(style))) is None:
            layer = self._number_layer(style.layer)
            number = None if layer is None else self.memory.add_style(layer, _get_style_flags(style))
            if number is not None:
                self._numbers[id(style)] = number
                self._styles.append(style)  # held, so that its id stays
        return number

    def _number_layer(self, layer: Layer) -> int | None:
        """The number of a layer, which is given one when it is new; None if there is no room for it."""
        if layer not in self._layers:
            if len(self._layers) == LAYERS:
                return None
            self._layers.append(layer)
        return self._layers.index(layer)


def _get_style_flags(style: Style) -> StyleFlag:
    flags = {
        StyleFlag.TAKES_ROOM: style.takes_room, StyleFlag.PLAIN: style.is_plain, StyleFlag.VISIBLE: style.visible,
        StyleFlag.BOXED_IN: style.boxed_in, StyleFlag.IN_DRAWING: style.in_drawing,
        StyleFlag.TO_THE_LEFT: style.to_the_left, StyleFlag.LAYS_OUT: style.lays_out,
    }  # fmt: skip
    return StyleFlag(sum(flag for flag, holds in flags.items() if holds))


def _pack_edges(tag: str, frame: RenderedFrame, style: Style, display: str) -> tuple[int, int] | None:
    """What an element starts and ends with, as nd_frame has it; None if that is more than edges."""
    if _is_closed(tag, display):
        is_break = tag == "br" and display not in ("none", "contents")
        start, end = _pack_edge((make_line_break(style),)) if is_break else 0, 0
    else:
        start, end = _pack_edge(frame.start), _pack_edge(frame.end) or 0
    return None if start is None else (start, end)


def _pack_edge(pieces: Sequence[Piece | Low]) -> int | None:
    """The pieces at the start or the end of an element, as nd_frame has them; None if they are not edges."""
    if not all(piece in EDGES for piece in pieces):
        return None
    codes = [code for piece in pieces if (code := EDGES[piece]) is not None]
    return int.from_bytes(bytes(codes), "little") if len(codes) <= MOST_EDGES else None


def shows_picture(values: Values) -> bool:
    """Whether an element shows a picture instead of its own text."""
    return values.get("content", "").startswith("url(")


def _find_inner_flags(tag: str, attributes: Attributes, values: Values, display: str) -> int:
    """The flags that say what an element shows within it."""
    flags = FrameFlag(0)
    if _is_closed(tag, display):
        return FrameFlag.CLOSED
    if (tag in SHOWN_IN_OTHER_WAYS and tag not in CLEAR) or tag in NOT_SHOWN or may_show_text(attributes):
        return FrameFlag.UNCLEAR
    if tag in PICTURES or tag == "input":
        flags |= FrameFlag.LEAF
    if tag == "textarea" or (tag == "input" and (attributes.get("type") or "").lower() not in WITHOUT_TEXT):
        flags |= FrameFlag.FIELD
    flags |= FrameFlag.TURNS * turns_order(values) | FrameFlag.GRID * display.endswith("grid")
    flags |= FrameFlag.FLEX * display.endswith("flex")
    return flags | FrameFlag.REVERSED * is_reversed(values)


def _is_closed(tag: str, display: str) -> bool:
    """Whether nothing within an element is shown."""
    is_never_shown = tag in NOT_SHOWN and display == "none" and tag not in PERHAPS_SHOWN
    return is_never_shown or tag in NEVER_SHOWN or tag in ("br", "wbr")


def _find_outer_flags(attributes: Attributes, values: Values) -> int:
    """The flags that say where an element stands among its siblings."""
    is_free = values.get("position") in ("absolute", "fixed")
    flags = {
        FrameFlag.VALUES: bool(values), FrameFlag.COVERS: covers(values), FrameFlag.ORDERED: "order" in values,
        FrameFlag.PLACED: is_free and not SIDES.isdisjoint(values),
        FrameFlag.FLOATS: values.get("float") in ("right", "inline-end"),
        FrameFlag.IN_CELL: any(name.startswith(("grid-row", "grid-column")) for name in values),
        FrameFlag.MOVES: parse_declarations(attributes.get("style") or "").moves,
    }  # fmt: skip
    return sum(flag for flag, holds in flags.items() if holds)


def _prepare_rules(rules: Rules, number: int) -> _PageRules:
    compounds = [_split_selector(rule.selector) if rule.pseudo != "slotted" else () for rule in rules.rules]
    flags = [ACTS * rule.declarations.acts | MOVES * rule.declarations.moves for rule in rules.rules]
    native = SheetRules(
        number,
        [(flag, parts or ()) for flag, parts in zip(flags, compounds, strict=True)],
        costly=sum(rule.is_costly for rule in rules.rules),
        most_matches=MOST_MATCHES // 2,
        most_work=MOST_WORK,
    )
    apart = [(order, rules.rules[order].selector) for order, parts in enumerate(compounds) if parts is None]
    return _PageRules(rules, native, tuple(apart))


def _split_selector(selector: str) -> Sequence[Compound] | None:
    """The compounds of a plain selector, the last one first; None for another selector."""
    if not PLAIN.fullmatch(selector):
        return None
    parts: list[tuple[bool, list[tuple[str, str]]]] = [(False, [])]  # whether it is for a child, and what it asks for
    for combinator, sign, name in PARTS.findall(selector):
        if name:
            parts[-1][1].append((sign, name))
        else:
            parts.append((combinator == ">", []))
    compounds = []
    for is_child, wanted in reversed(parts):
        tag = next((name for sign, name in wanted if not sign and name != "*"), None)
        tag_id = 0 if tag is None else LexborHTMLParser("").create_node(tag.lower()).tag_id
        compounds.append(Compound(tag_id, is_child, [(sign == "#", name) for sign, name in wanted if sign]))
    return compounds if all(compound.tag <= MOST_TAG_ID for compound in compounds) else None


_frames = _KnownFrames()
