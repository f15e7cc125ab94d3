"""Finds the text files among paths, folders and patterns: .txt, .md and .html."""

import glob
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from neardup.errors import Misuse

ENDINGS = (".txt", ".md", ".html", ".htm")


def find_files(paths: Sequence[str], left_out: Counter[str], known: set[str]) -> list[Path]:
    """The files that paths name: each file as it is, a folder's files with ENDINGS, and what matches a pattern.

    Folders are searched to any depth, but not those whose names begin with a dot.  A file is found once: the real paths
    of those found are added to `known`.  `left_out` counts the files of folders with other endings, by ending.  Raises
    Misuse for a path that names nothing, and for a folder that cannot be read.
    """
    files = []
    for path in paths:
        for file in _expanded(path, left_out):
            real = os.path.realpath(file)
            if real not in known:
                known.add(real)
                files.append(file)
    return files


def _expanded(path: str, left_out: Counter[str]) -> Iterator[Path]:
    if Path(path).is_dir():
        yield from _files_below(Path(path), left_out)
    elif Path(path).exists():
        yield Path(path)
    elif matches := sorted(glob.glob(path, recursive=True)):  # noqa: PTH207 - a pattern may be absolute
        for match in matches:
            yield from _files_below(Path(match), left_out) if Path(match).is_dir() else [Path(match)]
    else:
        raise Misuse(f"{path}: no such file or folder")


def _files_below(folder: Path, left_out: Counter[str]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise Misuse(f"cannot read the folder {error.filename}: {error.strerror}") from error

    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            ending = Path(name).suffix.lower()
            if ending in ENDINGS:
                yield Path(parent, name)
            else:
                left_out[ending or "no ending"] += 1
