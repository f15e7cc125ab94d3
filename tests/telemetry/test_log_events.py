"""A log line's event is a constant, by which lines can be counted and searched; what varies is in its keys."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

LEVELS = {"debug", "info", "warning", "error", "exception"}


def events(path: Path) -> Iterator[tuple[int, ast.expr]]:
    """The line and the event of each call of a method of `log`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name("log"), attr=level), args=[event, *_]) if level in LEVELS:
                yield node.lineno, event


def test_every_event_is_a_constant() -> None:
    found = [(path, line, event) for path in (ROOT / "daemon").rglob("*.py") for line, event in events(path)]
    assert len(found) > 20, "the events were not found"
    variable = [f"{path.name}:{line}" for path, line, event in found if not isinstance(event, ast.Constant)]
    assert not variable, f"these events vary: {variable}"
