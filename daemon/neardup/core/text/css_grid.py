"""The shorthands of the properties that place the children of a grid (CSS Grid Layout 7 and 8)."""

import re

LINES = ("grid-row-start", "grid-row-end", "grid-column-start", "grid-column-end")
TRACKS = ("grid-template-areas", "grid-template-rows", "grid-template-columns")
SHORTHANDS = ("grid-area", "grid-row", "grid-column", "grid-template", "grid")
STRING = re.compile(r"\"([^\"]*)\"|'([^']*)'")
NAME = re.compile(r"(?!(?:auto|span)$)-*[^\W\d][\w-]*", re.IGNORECASE)

Longhands = list[tuple[str, str]]


def longhands(name: str, value: str) -> Longhands:
    """A shorthand of SHORTHANDS -> its longhands."""
    if name in ("grid-template", "grid"):
        return _template(value)
    first, second, third, fourth = ([part.strip() for part in value.split("/")] + [""] * 3)[:4]
    if name != "grid-area":
        return [(f"{name}-start", first), (f"{name}-end", second or _end(first))]
    column = second or _end(first)
    return list(zip(LINES, (first, third or _end(first), column, fourth or _end(column)), strict=True))


def _end(start: str) -> str:
    """The end that a declaration means which names a start only: a name counts for both."""
    return start if NAME.fullmatch(start) else "auto"


def _template(value: str) -> Longhands:
    rows, _, columns = value.partition("/")
    areas = " ".join(match[0] for match in STRING.finditer(rows)) or "none"
    flow = "column" if "auto-flow" in columns.lower() else "row"
    return [
        ("grid-template-areas", areas),
        ("grid-template-rows", "none" if "auto-flow" in rows.lower() else STRING.sub(" ", rows).strip() or "none"),
        ("grid-template-columns", "none" if flow == "column" else columns.strip() or "none"),
        ("grid-auto-flow", flow),
    ]
