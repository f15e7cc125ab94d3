"""Laws of names, as CONTRIBUTING.md states them: nothing is called `one`, a function is no participle, and one word
names one thing.  What a machine cannot judge is left to the reader.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.paths import ROOT

# Of the verbs whose past participle has no ending of its own, only those that this project has used as one.
PARTICIPLE = re.compile(r"[a-z]*(ed|wn)|taken|given|written|hidden|broken|chosen|kept|held|made|found|lost|gone|said")
VERBS = {"embed", "feed", "need", "spawn"}  # that end like one
ITEM = re.compile(r"_*ones?")
RIDDLES = {"asked", "drawn", "marked", "some", "taken", "told", "tried"}  # of what?


def words_to_avoid() -> dict[str, str]:
    """Word -> the one to use instead, by the table in CONTRIBUTING.md."""
    rows = re.findall(r"(?m)^\| (.+?) \| .+? \| (.+?) \|$", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return {word: word_to_use for word_to_use, avoided in rows[1:] for word in re.findall(r"`(\w+)`", avoided)}


@cache
def modules(folder: str) -> list[tuple[Path, ast.Module]]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [(path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))) for path in paths]


def names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that a module gives to variables and parameters, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name, node.lineno


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions of a module, but for properties, which are values, and for answers to yes or no."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
            answers = node.returns is not None and ast.unparse(node.returns) == "bool"
            if not answers and decorators.isdisjoint({"property", "cached_property", "setter"}):
                yield node


@pytest.mark.parametrize("folder", ["daemon", "tests"])
def test_an_item_is_named_after_what_it_is(folder: str) -> None:
    wrong = [f"{path}:{line}" for path, tree in modules(folder) for name, line in names(tree) if ITEM.fullmatch(name)]
    assert not wrong, "an item is called `one`: say what it is"


def test_a_function_is_named_by_a_verb() -> None:
    wrong = [
        f"{path}:{function.lineno}: {function.name}"
        for path, tree in modules("daemon")
        for function in functions(tree)
        if PARTICIPLE.fullmatch(name := function.name.lstrip("_")) and name not in VERBS
    ]
    assert not wrong, "a participle names a function: say what it does"


def test_a_value_is_named_by_a_noun() -> None:
    wrong = [
        f"{path}:{line}: {name}"
        for path, tree in modules("daemon")
        for name, line in names(tree)
        if name.lstrip("_") in RIDDLES
    ]
    assert not wrong, "a name leaves open what the value is"


def test_one_word_names_one_thing() -> None:
    instead = words_to_avoid()
    assert instead, "CONTRIBUTING.md has no table of words"
    wrong = [
        f"{path}:{line}: {name}: say {instead[word]}"
        for path, tree in modules("daemon")
        for name, line in declared_names(tree)
        if not name.startswith("__")
        for word in re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
        if word in instead
    ]
    assert not wrong, "a word has a synonym"


def declared_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """The names of classes, functions, attributes, parameters and variables of a module, with their lines."""
    yield from names(tree)
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name, node.lineno
            case ast.Attribute(attr=name, ctx=ast.Store()):
                yield name, node.lineno
