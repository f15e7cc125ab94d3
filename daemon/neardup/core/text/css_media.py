"""Media queries: whether what a style sheet says for some screens holds for one of WIDTH by HEIGHT pixels."""

import re

WIDTH, HEIGHT = 1280, 720
LENGTH = r"\s*(\d*\.?\d+)(px|em|rem)?\s*"
NAMED = re.compile(rf"(min-|max-)?(?:device-)?(width|height):{LENGTH}")
RANGE = re.compile(rf"(width|height)\s*(<|>|)=?{LENGTH}")
BACKWARDS = re.compile(rf"{LENGTH}(<|>|)=?\s*(width|height)")
QUERY = re.compile(r"(?:(not|only)\s+)?([a-z-]+)?(.*)", re.DOTALL)
FEATURE = re.compile(r"(not\s*)?\(([^()]*)\)")
# What a reader at a plain screen does not have; a feature that is not named here holds.
FAILING = re.compile(
    r"prefers-color-scheme:dark|orientation:portrait|hover:none|pointer:(none|coarse)|monochrome|grid(:1)?$|prefers-"
    r"(reduced|contrast:more)|forced-colors:active|inverted-colors:inverted|scripting:none|(min-)?resolution:([3-9]|\d\d)"
)
SCREENS = {None, "all", "screen"}


def applies(media: str) -> bool:
    """Whether one of the queries, which commas separate, holds."""
    return not media.strip() or any(map(_holds, media.lower().split(",")))


def _holds(query: str) -> bool:
    negation, kind, rest = QUERY.fullmatch(query.strip()).groups()  # type: ignore[union-attr]
    if kind == "not" or (negation is None and kind is not None and rest.startswith("-")):
        negation, kind = "not", None
    features = [_has(text) != bool(no) for no, text in FEATURE.findall(rest)]
    found = any(features) if " or " in rest else all(features)
    if kind is None and negation == "not" and features:  # `not (feature)`
        return not found
    return (kind in SCREENS and found) != (negation == "not")


def _has(feature: str) -> bool:
    """Whether the screen has a feature; two comparisons of a range count each."""
    text = re.sub(r"\s*:\s*", ":", feature.strip())
    if match := NAMED.fullmatch(text):
        bound, side, number, unit = match.groups()
        return _compares(side, {"min-": ">", "max-": "<"}.get(bound, ""), number, unit)
    after = [_compares(side, sign, number, unit) for side, sign, number, unit in RANGE.findall(text)]
    before = [
        _compares(side, {"<": ">", ">": "<"}.get(sign, ""), number, unit)
        for number, unit, sign, side in BACKWARDS.findall(text)
    ]
    return all(after + before) and not FAILING.match(text)


def _compares(side: str, sign: str, number: str, unit: str) -> bool:
    has, asked = WIDTH if side == "width" else HEIGHT, float(number) * (1 if unit in ("px", "") else 16)
    return has >= asked if sign == ">" else has <= asked if sign == "<" else has == asked
