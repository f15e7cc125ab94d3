"""Binds `rendering.c`: a page that selectolax parsed -> the text that a browser shows by its styles."""

import ctypes
import threading
from collections.abc import Callable, Sequence
from enum import IntEnum, IntFlag
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from selectolax.lexbor import LexborNode

from neardup.core.native import ROOM, UNSUPPORTED, address, bind, check_code, list_fields
from neardup.core.native.fingerprint import CharacterCounts, CountMemory
from neardup.core.native.page import (
    KINDS,
    STORY,
    STORY_BYTES,
    VERDICT_BYTES,
    Doubt,
    Judge,
    TagRules,
    call_lexbor,
    learn_judged,
    learn_verdict,
    list_unjudged,
)

RULE = np.dtype([(name, np.uint32) for name in ("flags", "first_compound", "compound_count")])
COMPOUND = np.dtype([(name, np.uint32) for name in ("tag", "is_child", "first_name", "name_count")])
NAME = np.dtype([(name, np.uint32) for name in ("is_id", "offset", "size")])
STYLE = np.dtype([("layer", np.uint32), ("flags", np.uint32), ("variants", np.uint32, 3)])
FRAME = np.dtype(
    [(name, np.uint32) for name in ("flags", "style", "start", "end", "first_generated", "before", "after", "reserved")]
    + [(name, np.float64) for name in ("order", "line", "across")]
)
GENERATED = np.dtype([(name, np.uint32) for name in ("offset", "size", "layer", "takes_room", "visible")])
MOST_LAYERS, LAYERS = 32, 256  # that a page has, and that are known
MOST_STYLES, MOST_FRAMES, MOST_GENERATED, MOST_LETTERS = 4096, 2048, 1024, 1 << 16  # that are known
UNKNOWN = 0xFFFFFFFF
FRAME_KEY = len(KINDS)  # a larger kind is of a variant
ROOM_BYTES = 1 << 22
MOST_ROUNDS = 64  # of judging; a page that needs more has many elements in each other that are like no others


class StyleFlag(IntFlag):
    """As nd_style_flag."""

    TAKES_ROOM, PLAIN, VISIBLE, BOXED_IN, IN_DRAWING, TO_THE_LEFT, LAYS_OUT = (1 << n for n in range(7))


class Variant(IntEnum):
    """Another style of the same text, as nd_variant."""

    COVERED, CLIPPED, UNSEEN = range(3)


class FrameFlag(IntFlag):
    """As nd_frame_flag."""

    UNCLEAR, LEAF, CLOSED, FIELD, ARRANGED, TURNS, FLEX, REVERSED, GRID = (1 << n for n in range(9))
    VALUES, COVERS, ORDERED, PLACED, FLOATS, MOVES, IN_CELL, GENERATES = (1 << n for n in range(9, 17))


class Edge(IntEnum):
    """As nd_edge."""

    BREAK, HIDDEN_BREAK, INLINE_START, INLINE_END, LOW_START, LOW_END, BOX_START, BOX_END = range(1, 9)


class _Sheets(ctypes.Structure):
    _fields_ = list_fields(
        "number rules[] compounds[] names[] letters[] found[] costly_count most_matches most_work", ctypes.c_uint64
    )


class _Frames(ctypes.Structure):
    _fields_ = list_fields("memory[] frames[] styles[] generated[] letters[]", ctypes.c_uint64)


class Compound(NamedTuple):
    """A part of a selector for an element with a tag, unless it is 0, and names, each with whether it is an id.

    If it `is_child`, the compound before it is for the parent, and otherwise for any element around.
    """

    tag: int
    is_child: bool
    names: Sequence[tuple[bool, str]]


class SheetRules:
    """The rules of style sheets, as nd_sheets: the flags of each, and its compounds, the last one first.

    `number` is one for the same style sheets.
    """

    def __init__(
        self,
        number: int,
        rules: Sequence[tuple[int, Sequence[Compound]]],
        *,
        costly: int,
        most_matches: int,
        most_work: int,
    ) -> None:
        compounds = [compound for _, parts in rules for compound in parts]
        names = [name for compound in compounds for name in compound.names]
        firsts = np.cumsum([0, *(len(parts) for _, parts in rules)])
        first_names = np.cumsum([0, *(len(compound.names) for compound in compounds)])
        offsets = np.cumsum([0, *(len(name) for _, name in names)])
        arrays = (
            np.array([(flags, first, len(parts)) for (flags, parts), first in zip(rules, firsts, strict=False)], RULE),
            np.array(
                [
                    (part.tag, part.is_child, first, len(part.names))
                    for part, first in zip(compounds, first_names, strict=False)
                ],
                COMPOUND,
            ),
            np.array([(is_id, at, len(name)) for (is_id, name), at in zip(names, offsets, strict=False)], NAME),
            np.frombuffer("".join(name for _, name in names).encode("ascii"), np.uint8),
        )
        self._arrays = arrays  # held, because the fields have their addresses
        fields = [field for rows in arrays for field in (rows.ctypes.data, len(rows))]
        self.structure = _Sheets(number, *fields, None, 0, costly, most_matches, most_work)


class Generated(NamedTuple):
    """A text that a style sheet generates, as nd_generated."""

    text: bytes
    layer: int
    takes_room: bool
    visible: int


class Frame(NamedTuple):
    """What an element shows beside that within it, as nd_frame; the edges are packed."""

    flags: int
    style: int
    start: int
    end: int
    before: Sequence[Generated]
    after: Sequence[Generated]
    order: float
    line: float
    across: float


class FrameMemory:
    """The frames and styles that the native core knows."""

    def __init__(self) -> None:
        self._verdicts = np.zeros(VERDICT_BYTES, np.uint8)
        self._frames, self._styles = np.zeros(MOST_FRAMES, FRAME), np.zeros(MOST_STYLES, STYLE)
        self._generated, self._letters = np.zeros(MOST_GENERATED, GENERATED), np.zeros(MOST_LETTERS, np.uint8)
        arrays = self._verdicts, self._frames, self._styles, self._generated, self._letters
        self.structure = _Frames(*(field for array in arrays for field in (array.ctypes.data, 0)))
        self.clear()

    def clear(self) -> None:
        self._verdicts.fill(0)
        structure = self.structure
        structure.memory_count = VERDICT_BYTES
        structure.frames_count = structure.styles_count = structure.generated_count = structure.letters_count = 0

    def add_style(self, layer: int, flags: StyleFlag) -> int | None:
        """Add a style; returns its number, or None if there is no room for it."""
        number: int = self.structure.styles_count
        if number == MOST_STYLES:
            return None
        self._styles[number] = layer, flags, (UNKNOWN, UNKNOWN, UNKNOWN)
        self.structure.styles_count += 1
        return number

    def add_variant(self, style: int, kind: Variant, variant: int) -> None:
        self._styles[style]["variants"][kind] = variant

    def add_frame(self, key: bytes, frame: Frame) -> bool:
        """Add a frame; False if there is no room for it."""
        number, first = self.structure.frames_count, self.structure.generated_count
        if number == MOST_FRAMES or not all(map(self._add_generated, (*frame.before, *frame.after))):
            return False
        if not learn_verdict(self.structure.memory, FRAME_KEY, key, number):
            return False
        edges, place = frame[:4], frame[-3:]
        self._frames[number] = *edges, first, len(frame.before), len(frame.after), 0, *place
        self.structure.frames_count += 1
        return True

    def _add_generated(self, generated: Generated) -> bool:
        structure, size = self.structure, len(generated.text)
        number, at = structure.generated_count, structure.letters_count
        if number == MOST_GENERATED or size > MOST_LETTERS - at:
            return False
        self._letters[at : at + size] = np.frombuffer(generated.text, np.uint8)
        self._generated[number] = at, size, *generated[1:]
        structure.generated_count, structure.letters_count = number + 1, at + size
        return True


_POINTER, _NUMBER, _SIZE = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
_render = bind("nd_render", *(_POINTER,) * 5, _SIZE, _POINTER, _SIZE, _POINTER)
_write_pieces = bind("nd_write_pieces", _POINTER, _NUMBER, ctypes.c_char_p, _NUMBER, _POINTER, _SIZE, *(_POINTER,) * 4)
_RENDERED = Struct(f"=4Q{MOST_LAYERS}Q{MOST_LAYERS}I")  # the fields of nd_rendered after the story


class _Memory(threading.local):
    """What a thread uses for one page after another."""

    def __init__(self) -> None:
        self.room = np.empty(ROOM_BYTES, np.uint8)
        self.room_at = address(self.room, np.uint8)
        self.rendered = np.zeros(STORY_BYTES + _RENDERED.size, np.uint8)
        self.rendered_at = address(self.rendered, np.uint8)
        self.counts = CountMemory()
        self.characters = np.zeros(1, np.uint64)
        self.characters_at = address(self.characters, np.uint64)


_memory = _Memory()


class Pieces(NamedTuple):
    """Where the pieces of a page are until the next one is rendered, and the characters of each layer that has some."""

    at: int
    piece_count: int
    room_used: int
    characters: list[tuple[int, int]]


# Adds the frame or the variant of a key, as of nd_render; False if there is no room for it.
Answer = Callable[[int, bytes], bool]


def render_pieces(
    root: LexborNode,
    tags: TagRules,
    sheets: SheetRules,
    found: npt.NDArray[np.uint64],
    frames: FrameMemory,
    *,
    judge: Judge,
    answer: Answer,
) -> Pieces | Doubt | None:
    """A page, all of which is the story -> its pieces; None if there was no room for its frames.

    `found` (n, 2) are the elements that the rules without compounds match, ascending, with the numbers of the rules.
    """
    memory = _memory
    structure = sheets.structure
    structure.found, structure.found_count = found.ctypes.data, len(found)
    for _ in range(MOST_ROUNDS):
        code = call_lexbor(
            _render, root, tags, structure, frames.structure, memory.room_at, ROOM_BYTES, memory.rendered_at
        )
        _text, _characters, _sheets, doubt, unjudged = STORY.unpack_from(memory.rendered.data)
        if code == 0:
            pieces, count, room_used, layer_count, *rest = _RENDERED.unpack_from(memory.rendered.data, STORY_BYTES)
            characters, layers = rest[:layer_count], rest[MOST_LAYERS : MOST_LAYERS + layer_count]
            return Pieces(pieces, count, room_used, list(zip(layers, characters, strict=True)))
        if doubt != Doubt.UNJUDGED:
            return Doubt(doubt)
        for kind, value in list_unjudged(memory.rendered, unjudged):
            if kind < len(KINDS):
                learn_judged(kind, value, judge)
            elif not answer(kind, value):
                return None
    return Doubt.UNJUDGED


def write_pieces(pieces: Pieces, texts: Sequence[Sequence[int]]) -> tuple[bytes, CharacterCounts] | None:
    """The texts of some layers each, and the counts of their characters.

    None if they are too long, or not UTF-8, have replacement characters, or override their direction.
    """
    memory = _memory
    masks = np.zeros((len(texts), LAYERS), np.uint8)
    for mask, layers in zip(masks, texts, strict=True):
        mask[list(layers)] = 1
    room_at, room_bytes = memory.room_at + pieces.room_used, ROOM_BYTES - pieces.room_used
    size = check_code(
        _write_pieces(
            pieces.at,
            pieces.piece_count,
            masks.tobytes(),
            len(texts),
            room_at,
            room_bytes,
            *memory.counts.at,
            memory.characters_at,
        )
    )
    if size in (ROOM, UNSUPPORTED):
        return None
    return ctypes.string_at(room_at, size), memory.counts.get_counts(memory.characters.item())
