"""A list of the pages in a folder, as a manifest."""

import csv
import os
from collections.abc import Sequence
from pathlib import Path

from neardup.errors import Fatal, Misuse
from neardup.languages import Languages

ENDINGS = (".html", ".htm", ".xhtml", ".txt", ".md")


def list_pages(folder: Path) -> list[str]:
    """The pages in a folder and below, without hidden ones, as paths relative to it.  Raises Misuse if it has none."""
    paths = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [
            str((Path(parent) / name).relative_to(folder))
            for name in names
            if name.lower().endswith(ENDINGS) and not name.startswith(".")
        ]
    if not paths:
        raise Misuse(f"--pages: {folder} has no files {', '.join(f'*{ending}' for ending in ENDINGS)}")
    return sorted(paths)


def all_named(paths: Sequence[str], languages: Languages) -> bool:
    """Whether each page is in a folder that is named after its language."""
    return all(_language_of(path, languages) for path in paths)


def write_manifest(paths: Sequence[str], manifest: Path, languages: Languages, language: str | None) -> None:
    """Write a new manifest of pages, each named by its path, in the language of its folder, or else in `language`.

    Raises Misuse if the file exists, Fatal if it cannot be written.
    """
    try:
        with manifest.open("x", encoding="utf-8", newline="") as out:
            rows = ((path, _language_of(path, languages) or language, path) for path in paths)
            csv.writer(out).writerows([("id", "language", "path"), *rows])
    except FileExistsError:
        raise Misuse(f"{manifest} exists already: name it with --list, or move it away") from None
    except OSError as error:
        raise Fatal(f"cannot write {manifest}: {error.strerror}") from error


def _language_of(path: str, languages: Languages) -> str | None:
    """The language that the first folder of a path names."""
    first, slash, _ = path.partition("/")
    try:
        return languages.find(first) if slash else None
    except ValueError:
        return None
