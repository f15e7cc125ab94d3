"""Parses styles: the declarations that decide whether a browser shows a text, and the rules of a style sheet.

The parser is tinycss2.  Most pages use the same few styles, so parsed ones are cached.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cssselect2
import tinycss2

from neardup.core.text.css_media import applies
from neardup.core.text.css_values import LONGHANDS, colour, expanded, is_light, pixels

Longhands = tuple[tuple[str, str], ...]  # names and values
NODES = {"skip_comments": True, "skip_whitespace": True}
CONDITIONAL = {"supports", "layer", "container", "scope", "starting-style"}
BRACKETS = re.compile(r"[][(){}]")
MOST_NESTED = 32
MOST_RULES = 2_000  # of a page; matching one takes as long as walking the page
FAR = 1_000  # pixels; what lies further to the left of a page or above it is never seen
TINY = 2  # pixels; letters of this size cannot be read
FAINT = 0.05  # opacity
HIDING_CLIP = re.compile(r"inset\(\s*(100|[5-9]\d)(\.\d*)?%|(circle|ellipse)\(\s*0|polygon\(\s*0[^,)]*(,\s*0[^,)]*)*\)")
HIDING_TRANSFORM = re.compile(
    r"scale(x|y|3d)?\(\s*([\d.]+\s*,\s*)?0*(\.0+)?%?\s*[,)]|matrix\(\s*0\s*,\s*0\s*,|rotate[xy]\(\s*-?90deg"
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A declaration: `longhands` are empty where the value names a custom property, which the element decides."""

    name: str
    value: str
    important: bool
    longhands: Longhands


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of one block; `acts` says that they may hide a text, or change where its words end."""

    items: tuple[Declaration, ...]
    acts: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A selector of a style sheet and its declarations; `pseudo` is `before`, `after` or empty."""

    selector: str
    specificity: tuple[int, int, int]
    pseudo: str
    declarations: Declarations


@lru_cache(4096)
def declarations(style: str) -> Declarations:
    """The value of a `style` attribute -> its valid declarations of properties that matter here."""
    return _declarations([] if _is_deep(style) else tinycss2.parse_blocks_contents(style, **NODES))


@lru_cache(256)
def rules(sheet: str) -> tuple[Rule, ...]:
    """A style sheet -> its rules that matter here, for the screen of `css_media`."""
    found: list[Rule] = []
    if _is_deep(sheet):
        return ()
    for rule in _rules(tinycss2.parse_stylesheet(sheet, **NODES), ""):
        found.append(rule)
        if len(found) == MOST_RULES:
            break
    return tuple(found)


def _is_deep(text: str) -> bool:
    """Whether brackets are nested deeper than the parser can follow, which no honest style does."""
    deepest = depth = 0
    for bracket in BRACKETS.findall(text):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return deepest > MOST_NESTED


def substituted(value: str, custom: Mapping[str, str], depth: int = 0) -> str | None:
    """A value with its `var()`s replaced; None if a property is not defined and has no fallback."""
    at = value.find("var(")
    if at < 0:
        return value
    end = _closing(value, at + 3)
    name, comma, fallback = value[at + 4 : end].partition(",")
    held = custom.get(name.strip(), fallback if comma else None)
    if held is None or depth > 16:
        return None
    return substituted(f"{value[:at]}{held}{value[end + 1 :]}".strip(), custom, depth + 1)


def _closing(value: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(value)):
        depth += {"(": 1, ")": -1}.get(value[at], 0)
        if not depth:
            return at
    return len(value)


def _rules(nodes: list[Any], within: str) -> Iterator[Rule]:
    for node in nodes:
        if node.type == "qualified-rule":
            yield from _style_rule(node, within)
        elif node.type == "at-rule" and node.content and _holds(node):
            yield from _rules(tinycss2.parse_rule_list(node.content, **NODES), within)


def _holds(condition: Any) -> bool:
    """Whether the rules within an at-rule apply."""
    if condition.lower_at_keyword == "media":
        return applies(tinycss2.serialize(condition.prelude))
    return condition.lower_at_keyword in CONDITIONAL


def _style_rule(node: Any, within: str) -> Iterator[Rule]:
    content = tinycss2.parse_blocks_contents(node.content, **NODES)
    block = _declarations(content)
    selectors = [_nested(one, within) for one in _split(tinycss2.serialize(node.prelude))]
    for selector in selectors if block.items else ():
        try:
            (compiled,) = cssselect2.compile_selector_list(selector)
        except (cssselect2.SelectorError, ValueError):
            continue
        pseudo = compiled.pseudo_element or ""
        if pseudo in ("", "before", "after"):
            plain = re.sub(r"::?(before|after)\s*$", "", selector, flags=re.IGNORECASE) if pseudo else selector
            yield Rule(plain or "*", compiled.specificity, pseudo, block)
    inner = [one for one in content if one.type in ("qualified-rule", "at-rule")]
    yield from _rules(inner, f":is({', '.join(selectors)})") if inner else ()


def _nested(selector: str, within: str) -> str:
    if not within:
        return selector
    return selector.replace("&", within) if "&" in selector else f"{within} {selector}"


def _split(selectors: str) -> list[str]:
    """The selectors of a list; a comma in brackets does not separate two."""
    parts, depth, start = [], 0, 0
    for at, character in enumerate(selectors):
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(selectors[start:at].strip())
            start = at + 1
    return [*parts, selectors[start:].strip()]


def _declarations(nodes: list[Any]) -> Declarations:
    items = []
    for node in nodes:
        if node.type != "declaration":
            continue
        value = tinycss2.serialize([one for one in node.value if one.type != "comment"]).strip()
        if node.name.startswith("--"):
            items.append(Declaration(node.name, value, node.important, ()))
        elif "var(" in value.lower() and node.lower_name in LONGHANDS:
            items.append(Declaration(node.lower_name, value, node.important, ()))
        elif longhands := expanded(node.lower_name, value):
            items.append(Declaration(node.lower_name, value, node.important, longhands))
    return Declarations(tuple(items), any(map(_acts, items)))


def _acts(declaration: Declaration) -> bool:
    if not declaration.longhands:
        return "var(" in declaration.value.lower() and not declaration.name.startswith("--")
    return any(_may_hide(name, value) for name, value in declaration.longhands)


def _may_hide(name: str, value: str) -> bool:  # noqa: PLR0911 - one line a property
    match name:
        case "display" | "content" | "content-visibility" | "clip":
            return value not in ("normal", "auto", "visible")
        case "unicode-bidi":
            return value.endswith("override")
        case "visibility":
            return value not in ("visible", "inherit")
        case "font-size" | "zoom" | "width" | "height" | "max-width" | "max-height":
            return (size := pixels(value)) is not None and size < TINY
        case "opacity":
            return (pixels(value, whole=1) or 0) < FAINT
        case "color" | "-webkit-text-fill-color":
            return (parsed := colour(value)) is not None and (parsed[3] < FAINT or is_light(parsed))
        case "background-color":
            return (parsed := colour(value)) is not None and not is_light(parsed)
        case "left" | "top" | "right" | "bottom" | "margin-left" | "margin-top" | "text-indent":
            return abs(pixels(value) or 0) >= FAR
        case "clip-path" | "contain" | "transform" | "scale" | "translate" | "filter":
            return value != "none"
    return False
