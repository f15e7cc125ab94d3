"""The arithmetic of CSS: calc(), min(), max() and clamp()."""

import ast
import operator
import re
from collections.abc import Callable
from math import isnan

FUNCTIONS = re.compile(r"(?:-webkit-)?calc(?=\()")
STARTS = ("calc(", "-webkit-calc(", "min(", "max(", "clamp(")
TERM = re.compile(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?[a-z%]*")
MOST_PIXELS = 33_554_428.0
LONGEST = 100  # characters; a browser reads longer ones, which pages do not have
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
SIGNS: dict[type[ast.unaryop], Callable[[float], float]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


def calculated(value: str, length: Callable[[str], float | None]) -> float | None:
    """The number that an arithmetic value comes to, where `length` gives that of a term; None for other values."""
    if not value.startswith(STARTS) or len(value) > LONGEST:
        return None
    terms = TERM.sub(lambda term: str(length(term[0])), FUNCTIONS.sub("", value))
    try:
        return bounded(_number(ast.parse(terms, mode="eval").body))
    except (SyntaxError, ValueError, ArithmeticError):
        return None


def bounded(number: float) -> float:
    """A number within what a browser can lay out; 0 for one that is none, as in a browser."""
    return 0.0 if isnan(number) else max(-MOST_PIXELS, min(number, MOST_PIXELS))


def _number(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=float(number)):
            return number
        case ast.UnaryOp(op, operand) if type(op) in SIGNS:
            return SIGNS[type(op)](_number(operand))
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_number(left), _number(right))
        case ast.Call(ast.Name("min"), [first, *rest]):
            return min([_number(first), *map(_number, rest)])
        case ast.Call(ast.Name("max"), [first, *rest]):
            return max([_number(first), *map(_number, rest)])
        case ast.Call(ast.Name("clamp"), [least, middle, most]):
            return max(_number(least), min(_number(middle), _number(most)))
    raise ValueError("not arithmetic")
