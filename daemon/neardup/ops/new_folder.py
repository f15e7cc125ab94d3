"""What `init` and `demo` write: a configuration, and the sample stories.

The configuration is that of the samples, whose every key has a comment, with other values.
"""

import json
import re
import shutil
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

from neardup.errors import Fatal, Misuse

CONFIG = "config.toml"
SECTION = re.compile(r"\[([\w.]+)\]")
KEY = re.compile(r"(?:# )?(\w+) = ")
COMMENT_COLUMN = 41

Value = str | tuple[str, ...] | None  # None: the key is not set


def make_config_text(values: Mapping[str, Value]) -> str:
    """The commented configuration with these values of `section.key`.

    A key without a value here keeps its line.  Raises ValueError for a key that the configuration lacks.
    """
    remaining, section, lines = dict(values), "", list[str]()
    for line in (files("neardup") / "samples" / "config.toml").read_text(encoding="utf-8").splitlines():
        if heading := SECTION.fullmatch(line):
            section = heading[1]
        key = KEY.match(line)
        name = f"{section}.{key[1]}" if key else ""
        lines.append(_replace_value(name, remaining.pop(name), line) if name in remaining else line)
    if remaining:
        raise ValueError(f"the configuration has no {', '.join(remaining)}")
    return "\n".join([*lines, ""])


def _replace_value(name: str, value: Value, line: str) -> str:
    """The line of a key with another value, and with the comment that it had."""
    if value is None:
        return line if line.startswith("# ") else f"# {line}"
    toml = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids it, JSON does not
    _, mark, comment = line.removeprefix("# ").partition(" # ")
    start = f"{name.partition('.')[2]} = {toml}"
    return f"{start:<{COMMENT_COLUMN - 1}} # {comment}" if mark else start


def copy_samples(folder: Path) -> Path:
    """Copy the samples into a folder, which is made if need be; returns the path of their configuration.

    Raises Misuse for a folder that holds anything else, Fatal if the folder cannot be written.
    """
    try:
        with as_file(files("neardup") / "samples") as samples:
            is_demo = (folder / CONFIG).exists() and (folder / CONFIG).read_bytes() == (samples / CONFIG).read_bytes()
            if folder.exists() and not is_demo and any(folder.iterdir()):
                raise Misuse(f"{folder} holds files of your own: name a new folder, `neardup demo FOLDER`")
            shutil.copytree(samples, folder, ignore=shutil.ignore_patterns("meaning"), dirs_exist_ok=True)
    except OSError as error:
        raise Fatal(f"cannot write the samples to {folder}: {error.strerror or error}") from error
    return folder / CONFIG
