"""The text of a configuration file: the commented configuration of the samples, with other values."""

import json
import re
from collections.abc import Mapping
from importlib.resources import files

SECTION = re.compile(r"\[([\w.]+)\]")
KEY = re.compile(r"(?:# )?(\w+) = ")
COMMENT_COLUMN = 41

Value = str | tuple[str, ...]


def config_text(values: Mapping[str, Value]) -> str:
    """The commented configuration with these values of `section.key`.

    A key without a value here keeps its line.  Raises ValueError for a key that the configuration lacks.
    """
    remaining, section, lines = dict(values), "", list[str]()
    for line in (files("neardup") / "samples" / "config.toml").read_text(encoding="utf-8").splitlines():
        if heading := SECTION.fullmatch(line):
            section = heading[1]
        key = KEY.match(line)
        name = f"{section}.{key[1]}" if key else ""
        lines.append(_line(name, remaining.pop(name), line) if name in remaining else line)
    if remaining:
        raise ValueError(f"the configuration has no {', '.join(remaining)}")
    return "\n".join([*lines, ""])


def _line(name: str, value: Value, line: str) -> str:
    """The line of a key with another value, and with the comment that it had."""
    toml = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids it, JSON does not
    _, mark, comment = line.removeprefix("# ").partition(" # ")
    start = f"{name.partition('.')[2]} = {toml}"
    return f"{start:<{COMMENT_COLUMN - 1}} # {comment}" if mark else start
