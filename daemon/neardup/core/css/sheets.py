"""Style sheets -> the rules that matter here, with what is said about where they apply.

The parsers are tinycss2 and cssselect2.  Nested rules, cascade layers, `@supports`, `@scope` and `@media` are followed
(CSS Cascading 5, CSS Nesting, Media Queries 5); imports are where they stand in `data:` addresses (RFC 2397), since
nothing is fetched.  The screen has WIDTH by HEIGHT pixels.
"""

import base64
import binascii
import operator
import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import cssselect2
import tinycss2

from neardup.core.css.declarations import NODES, Declaration, Declarations, make_parsable, read_declarations
from neardup.core.css.values import LONGHANDS, expand, parse_length

# What the parser raises for what is no selector; the last two are its own mistakes.
NO_SELECTOR = (cssselect2.SelectorError, ValueError, NotImplementedError, AttributeError, SyntaxError)
MOST_COMPOUNDS = 64  # of a selector; the parser takes their number squared, and fails for a thousand
MOST_RULES = 2_000  # of a page; matching one takes as long as walking the page
PSEUDO = re.compile(r"::?(before|after|marker|first-letter)\s*$", re.IGNORECASE)
STYLED = ("", "before", "after", "marker", "first-letter", "slotted")  # parts of an element whose styles count
OTHER_PART = re.compile(
    r"::(?:backdrop|selection|placeholder|part|cue|file-selector-button|target-text|highlight|-webkit-[\w-]+)"
    r"(?:\([^()]*\))?(?::[\w-]+)*\s*$",
    re.IGNORECASE,
)
SLOTTED = re.compile(r"::slotted\((.*)\)\s*$", re.IGNORECASE)
# Pseudo-classes that the parser of selectors does not know, which may hold, and those that style a part of a text.
STATES = (
    r":(?:lang|dir|target|defined|scope|host|host-context|autofill|-webkit-autofill|fullscreen|modal|user-valid|state|"
    r"user-invalid|popover-open|focus-visible|focus-within|placeholder-shown|in-range|out-of-range|read-only|read-write|"
    r"optional|required|valid|invalid|default|indeterminate|open|picture-in-picture|:?first-line|"
    r":details-content)(?![\w-])(?:\([^()]*\))?"
)
# Those that browsers know beside them; a list of selectors with another one does not count.
OTHER_NAMES = frozenset((
    "is", "where", "not", "has", "nth-child", "nth-last-child", "nth-of-type", "nth-last-of-type", "first-child",
    "last-child", "first-of-type", "last-of-type", "only-child", "only-of-type", "empty", "link", "any-link", "visited",
    "hover", "active", "focus", "checked", "enabled", "disabled", "before", "after", "marker", "root",
    "placeholder", "selection", "backdrop", "slotted", "part", "cue", "file-selector-button", "target-text",
    "highlight", "first-letter",
))  # fmt: skip
BARE_FUNCTION = re.compile(r"(?<![^\s>+~,(])(?=:(?:is|where|not|has|any|matches)\()", re.IGNORECASE)
COMBINATOR = re.compile(r"(?<=[\w\])*])(?:\s*[>+~]\s*|\s+)(?=[\w.#:\[*])")
COSTLY = re.compile(r"~|:nth|:has|:last|:only")  # selectors that look at all siblings of an element
ANY_NAMESPACE = re.compile(r"\*\|(?=[\w*-])")
NAME = re.compile(r"(?<!\\)::?([a-z-]+)", re.IGNORECASE)
STRING = re.compile(r"\"[^\"]*\"|'[^']*'")
LANGUAGE = re.compile(r":lang\(\s*[\"']?([\w-]+)[\"']?\s*\)", re.IGNORECASE)
RIGHT_TO_LEFT, LEFT_TO_RIGHT = (
    re.compile(rf":dir\(\s*{direction}\s*\)", re.IGNORECASE) for direction in ("rtl", "ltr")
)
UNKNOWN_STATE = re.compile(rf":not\(\s*{STATES}\s*\)|{STATES}", re.IGNORECASE)
SUPPORTED = re.compile(r"(not\s*)?\(\s*([\w-]+)\s*:([^()]*(?:\([^()]*\))?[^()]*)\)", re.IGNORECASE)
KNOWN = re.compile(
    r"(-webkit-)?(display|position|color|background|font|margin|padding|border|width|height|flex|grid|gap|object-fit|"
    r"aspect-ratio|filter|backdrop-filter|transform|animation|transition|overflow|inset|content-visibility|mask|"
    r"clip-path|container|scrollbar|accent-color|text-wrap|writing-mode|appearance|opacity|visibility)(-[\w-]+)?$"
)
UNLAYERED = 1_000_000  # the rank of rules in no cascade layer: above those of all layers
DEEPEST = 3  # imports

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

DATA = re.compile(r"\s*data:([^,;]*)((?:;[^,;]*)*),(.*)", re.IGNORECASE | re.DOTALL)
LONGEST_ADDRESS = 4_000_000  # characters; the pipeline reads no larger page


class Rule(NamedTuple):
    """A selector of a style sheet and its declarations; `pseudo` is that of a part of the element, `slotted` or empty.

    What is `slotted` stands in the host of a shadow tree, and its selector is of this host's page.

    `layer` is the rank of its cascade layer; it `is_doubtful` where it is not known whether the rule applies.
    A selector that `is_costly` looks at all siblings of an element.
    """

    selector: str
    specificity: tuple[int, int, int]
    pseudo: str
    declarations: Declarations
    layer: int = UNLAYERED
    is_doubtful: bool = False
    is_costly: bool = False


class _Scope(NamedTuple):
    """What stands around a rule: the selectors it is nested in, its layer, and what is said about where it applies."""

    layers: dict[str, int]
    selectors: str = ""
    layer: str = ""
    is_doubtful: bool = False
    depth: int = 0


def parse_rules(sheet: str) -> tuple[Rule, ...]:
    """A style sheet -> its rules that matter here, for a screen of WIDTH by HEIGHT pixels."""
    found: list[Rule] = []
    for rule in _read_sheet(sheet, _Scope({})):
        found.append(rule)
        if len(found) == MOST_RULES:
            break
    return tuple(found)


def _read_sheet(sheet: str, scope: _Scope) -> Iterator[Rule]:
    yield from _read_rules(tinycss2.parse_stylesheet(make_parsable(sheet), **NODES), scope)


def _read_rules(nodes: list[Any], scope: _Scope) -> Iterator[Rule]:
    for node in nodes:
        if node.type == "qualified-rule":
            written = _split_list(node.prelude)
            if all(written):  # a list with an empty selector is none
                selectors = [_nest(selector, scope.selectors) for selector in written]
                yield from _read_block(node.content, selectors, scope)
        elif node.type == "at-rule":
            yield from _read_at_rule(node, scope)


def _read_at_rule(node: Any, scope: _Scope) -> Iterator[Rule]:
    name, prelude = node.lower_at_keyword, tinycss2.serialize(node.prelude).strip()
    if name == "import":
        yield from _import_rules(node, scope)
    elif name == "property":
        yield from _read_initial(node, prelude, scope)
    elif (inside := _enter(name, prelude, scope)) is not None and node.content is not None:
        if inside.selectors:
            yield from _read_block(node.content, [inside.selectors], inside)
        else:
            yield from _read_rules(tinycss2.parse_rule_list(node.content, **NODES), inside)


def _enter(name: str, prelude: str, scope: _Scope) -> _Scope | None:
    """The scope of what stands in an at-rule; None if it does not apply."""
    match name:
        case "layer":
            names = [_name_layer(scope, layer) for layer in prelude.split(",")]
            for layer in names:
                scope.layers.setdefault(layer, len(scope.layers))
            return scope._replace(layer=names[0])
        case "supports":
            holds = _is_supported(prelude)
            return None if holds is False else scope._replace(is_doubtful=scope.is_doubtful or holds is None)
        case "scope":
            within = re.match(r"\(([^()]*)\)", prelude)
            return scope._replace(selectors=within[1]) if within else scope
        case "container":
            return scope._replace(is_doubtful=True)
        case "media":
            return scope if applies(prelude) else None
    return None


def _read_initial(node: Any, name: str, scope: _Scope) -> Iterator[Rule]:
    """A rule that gives a custom property its initial value."""
    for declared in tinycss2.parse_blocks_contents(node.content or [], **NODES):
        if declared.type == "declaration" and declared.lower_name == "initial-value":
            declaration = Declaration(name, tinycss2.serialize(declared.value).strip(), important=False, longhands=())
            yield Rule("html", (0, 0, 0), "", Declarations((declaration,), acts=False), is_doubtful=scope.is_doubtful)


def _name_layer(scope: _Scope, name: str) -> str:
    return f"{scope.layer}.{name.strip() or len(scope.layers)}"


def _import_rules(node: Any, scope: _Scope) -> Iterator[Rule]:
    address, *rest = [token for token in node.prelude if token.type != "whitespace"] or [None]
    value = getattr(address, "value", None)
    if getattr(address, "type", "") == "function":
        value = next((argument.value for argument in address.arguments if argument.type == "string"), None)
    found = decode_data_url(value) if isinstance(value, str) and scope.depth < DEEPEST else None
    media: list[Any] = []
    inside: _Scope | None = scope
    for token in rest:
        name = getattr(token, "lower_name", getattr(token, "lower_value", ""))
        if inside is None or name not in ("layer", "supports"):
            media.append(token)
        else:
            inside = _enter(name, f"({text})" if ":" in (text := _read_arguments(token)) else text, inside)
    if found is not None and inside is not None and applies(tinycss2.serialize(media)):
        yield from _read_sheet(found.text, inside._replace(depth=scope.depth + 1))


def _read_arguments(node: Any) -> str:
    """What stands between the brackets of a function; empty for a word."""
    return str(tinycss2.serialize(getattr(node, "arguments", []))).strip()


def _is_supported(condition: str) -> bool | None:
    """Whether a browser supports what a condition asks; None if that is not known."""
    queries = SUPPORTED.findall(condition)
    if not queries or SUPPORTED.sub("", condition).strip(" ()"):
        return None
    (negation, name, value), *others = (tuple(map(str.lower, match)) for match in queries)
    if others or (name not in LONGHANDS and KNOWN.match(name)):
        return None
    return (name in LONGHANDS and expand(name, value.strip()) != ()) != bool(negation)


def _read_block(content: Any, selectors: list[str], scope: _Scope) -> Iterator[Rule]:
    """The rules of a block with these selectors, and of those nested in it."""
    nodes = tinycss2.parse_blocks_contents(content, **NODES)
    block = read_declarations(nodes)
    if block.items:
        found = [_read_rule(selector, block, scope) for selector in selectors[:MOST_RULES]]
        # Browsers leave out a list with a selector that they do not know either.
        is_doubtful = None in found or len(selectors) > MOST_RULES or not all(map(_is_known, selectors))
        yield from (
            rule._replace(is_doubtful=rule.is_doubtful or is_doubtful)
            for rule in found
            if rule is not None and rule.pseudo in STYLED
        )
    inner = [node for node in nodes if node.type in ("qualified-rule", "at-rule")]
    if inner:
        yield from _read_rules(inner, scope._replace(selectors=f":is({', '.join(selectors)})"))


def _read_rule(selector: str, block: Declarations, scope: _Scope) -> Rule | None:
    """A rule with one selector; None for what is no selector."""
    if slotted := SLOTTED.search(selector):
        return Rule(slotted[1], (0, 0, 0), "slotted", block)
    plain = UNKNOWN_STATE.sub("", _select_by_attributes(ANY_NAMESPACE.sub("", _shorten(selector))))
    of_element = OTHER_PART.sub("", plain)
    try:
        (compiled,) = cssselect2.compile_selector_list(_complete(of_element))
    except NO_SELECTOR:
        return None
    pseudo = compiled.pseudo_element or "" if of_element == plain else "other"
    completed = _complete(PSEUDO.sub("", plain) if pseudo else plain)
    layer = scope.layers[scope.layer] if scope.layer else UNLAYERED
    may_hold = scope.is_doubtful or plain != selector
    is_costly = COSTLY.search(completed) is not None
    return Rule(completed, compiled.specificity, pseudo, block, layer, may_hold, is_costly)


def _shorten(selector: str) -> str:
    """A selector; of one with more than MOST_COMPOUNDS, the last one, or if that holds so many itself, any element."""
    if len(COMBINATOR.findall(selector)) < MOST_COMPOUNDS:
        return selector
    last = COMBINATOR.split(selector)[-1]
    return last if last.count("(") == last.count(")") and last.count("[") == last.count("]") else "*"


def _is_known(selector: str) -> bool:
    """Whether browsers know all pseudo-classes and pseudo-elements of a selector."""
    names = NAME.findall(UNKNOWN_STATE.sub("", STRING.sub("", selector)))
    return all(name.lower() in OTHER_NAMES or name.startswith("-webkit-") for name in names)


def _select_by_attributes(selector: str) -> str:
    """A selector with the attributes of an element, or of one around it, for its language and its direction."""
    selector = LANGUAGE.sub(r':is([lang|="\1" i], [lang|="\1" i] *)', selector)
    selector = RIGHT_TO_LEFT.sub(":is([dir=rtl i], [dir=rtl i] *)", selector)
    return LEFT_TO_RIGHT.sub(":not([dir=rtl i], [dir=rtl i] *)", selector)


def _complete(selector: str) -> str:
    """A selector of which a part was left out, with an element before each bare `:is()`, which the parser needs."""
    selector = BARE_FUNCTION.sub("*", selector)
    return (
        selector + "*" if not selector.strip() or selector.rstrip()[-1] in ">+~" or selector.endswith(" ") else selector
    )


def _nest(selector: str, within: str) -> str:
    if not within:
        return selector
    if ":scope" in selector:
        return selector.replace(":scope", within)
    return selector.replace("&", within) if "&" in selector else f"{within} {selector}"


def _split_list(prelude: list[Any]) -> list[str]:
    """The selectors of a list; a comma in brackets or in a string is within a token, and does not separate two."""
    parts: list[list[Any]] = [[]]
    for node in prelude:
        if node == ",":
            parts.append([])
        else:
            parts[-1].append(node)
    return [tinycss2.serialize(part).strip() for part in parts]


def applies(media: str) -> bool:
    """Whether one of the queries, which commas separate, holds."""
    queries = CALCULATED.sub(lambda length: f"{parse_length(length[0]) or 0}px", media.lower())
    return not media.strip() or any(map(_holds, queries.split(",")))


def _holds(query: str) -> bool:
    negation, kind, rest = QUERY.fullmatch(query.strip()).groups()  # type: ignore[union-attr]
    if kind == "not" or (negation is None and kind is not None and rest.startswith("-")):
        negation, kind = "not", None
    answers = [(_has(text), bool(no)) for no, text in FEATURE.findall(rest)]
    features = [has is not None and has != no for has, no in answers]
    if negation == "not" and kind in SCREENS and any(has is None for has, _ in answers):
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
    limit = float(number[1]) / float(number[2] or 1) * UNITS.get(number[3], 1)
    return bool(SIGNS[sign](NUMBERS[name], limit))


class DataURL(NamedTuple):
    """The media type of a `data:` address, in lower case, and its document as text."""

    kind: str
    text: str


def decode_data_url(address: str | None) -> DataURL | None:
    """A `data:` address -> its document, of which broken bytes are replaced; None for other addresses."""
    match = DATA.match(address) if address and len(address) <= LONGEST_ADDRESS else None
    if match is None:
        return None
    body = unquote_to_bytes(match[3])
    if match[2].lower().rstrip().endswith(";base64"):
        try:
            body = base64.b64decode(body + b"=" * (-len(body) % 4))
        except binascii.Error:
            return None
    return DataURL(match[1].strip().lower() or "text/plain", body.decode("utf-8", "replace"))
