"""Media queries: whether what a style sheet says for some screens holds for one of WIDTH by HEIGHT pixels."""

import operator
import re

from neardup.core.text.css_values import pixels

WIDTH, HEIGHT = 1280, 720
NUMBERS = {  # features that are numbers, in pixels or dots a pixel
    "width": WIDTH, "device-width": WIDTH, "height": HEIGHT, "device-height": HEIGHT, "aspect-ratio": WIDTH / HEIGHT,
    "device-aspect-ratio": WIDTH / HEIGHT, "resolution": 1, "-webkit-device-pixel-ratio": 1, "color": 8,
    "color-index": 0, "monochrome": 0, "grid": 0, "horizontal-viewport-segments": 1, "vertical-viewport-segments": 1,
    "-webkit-transform-3d": 1,
}  # fmt: skip
# Features that are words; a feature or a word that is not named here does not hold.
WORDS = {
    "orientation": "landscape", "hover": "hover", "any-hover": "hover", "pointer": "fine", "any-pointer": "fine",
    "update": "fast", "overflow-block": "scroll", "overflow-inline": "scroll", "scripting": "enabled",
    "color-gamut": "srgb", "dynamic-range": "standard", "display-mode": "browser", "device-posture": "continuous",
    "prefers-color-scheme": "light", "prefers-reduced-motion": "no-preference", "prefers-contrast": "no-preference",
    "prefers-reduced-transparency": "no-preference", "forced-colors": "none",
}  # fmt: skip
WITHOUT_VALUE = {"no-preference", "none"}  # values of a feature that does not hold where it is asked without a value
VALUE = re.compile(r"(\d*\.?\d+)(?:\s*/\s*(\d*\.?\d+))?\s*(px|em|rem|in|cm|mm|pt|pc|dppx|x|dpi|dpcm)?")
UNITS = {
    "em": 16, "rem": 16, "in": 96, "cm": 96 / 2.54, "mm": 9.6 / 2.54, "pt": 4 / 3, "pc": 16, "dpi": 1 / 96,
    "dpcm": 2.54 / 96,
}  # fmt: skip
SIGNS = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge, "=": operator.eq}
BACKWARDS = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "="}
BOUNDS = {"min": ">=", "max": "<=", "": "="}
BOUNDED = re.compile(r"(-webkit-)?(?:(min|max)-)?(.+)")
SIGN = re.compile(r"([<>]=?|=)")
QUERY = re.compile(r"(?:(not|only)\s+)?([a-z-]+)?(.*)", re.DOTALL)
CALCULATED = re.compile(r"calc\([^()]*\)")
FEATURE = re.compile(r"(not\s*)?\(([^()]*)\)")
SCREENS = {None, "all", "screen"}


def applies(media: str) -> bool:
    """Whether one of the queries, which commas separate, holds."""
    queries = CALCULATED.sub(lambda length: f"{pixels(length[0]) or 0}px", media.lower())
    return not media.strip() or any(map(_holds, queries.split(",")))


def _holds(query: str) -> bool:
    negation, kind, rest = QUERY.fullmatch(query.strip()).groups()  # type: ignore[union-attr]
    if kind == "not" or (negation is None and kind is not None and rest.startswith("-")):
        negation, kind = "not", None
    asked = [(_has(text), bool(no)) for no, text in FEATURE.findall(rest)]
    features = [has is not None and has != no for has, no in asked]
    if negation == "not" and kind in SCREENS and any(has is None for has, _ in asked):
        return False
    found = any(features) if " or " in rest else all(features)
    if kind is None and negation == "not" and features:  # `not (feature)`
        return not found
    return (kind in SCREENS and found) != (negation == "not")


def _has(feature: str) -> bool | None:
    """Whether the screen has a feature; None for one that browsers do not know."""
    name, colon, value = map(str.strip, feature.partition(":"))
    parts = [part.strip() for part in SIGN.split(feature)]
    if len(parts) == 3:
        return _compares(*parts) if parts[0] in NUMBERS else _compares(parts[2], BACKWARDS[parts[1]], parts[0])
    if len(parts) == 5:
        return _compares(parts[2], BACKWARDS[parts[1]], parts[0]) and _compares(*parts[2:])
    if name in WORDS:
        return value == WORDS[name] if colon else WORDS[name] not in WITHOUT_VALUE
    prefix, bound, rest = BOUNDED.fullmatch(name or "-").groups(default="")  # type: ignore[union-attr]
    if prefix + rest not in NUMBERS or (bound and not colon):
        return None
    return _compares(prefix + rest, BOUNDS[bound], value) if colon else NUMBERS[prefix + rest] > 0


def _compares(name: str, sign: str, value: str) -> bool:
    number = VALUE.fullmatch(value)
    if number is None or name not in NUMBERS or (number[2] and not float(number[2])):
        return False
    asked = float(number[1]) / float(number[2] or 1) * UNITS.get(number[3], 1)
    return bool(SIGNS[sign](NUMBERS[name], asked))
