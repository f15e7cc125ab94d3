"""How a file comes to its place, whole or not at all: a path, an object of S3, or stdout."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from neardup.config import Content
from neardup.config.export import Target
from neardup.errors import Fatal, NeardupError, Transient
from neardup.s3_objects import upload

R = TypeVar("R")


async def write_to_target(target: Target | None, content: Content, write: Callable[[Path], R]) -> R:
    """What `write(file)` returns, its file then being at the target; None is stdout.

    S3's endpoint and region are those of [content].  Raises Fatal for what cannot be written, Transient for
    a store that does not answer; what was at the target is then still there.
    """
    if isinstance(target, Path):
        return await asyncio.to_thread(write_atomically, target.resolve(), write)
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        file = Path(folder) / "export"
        made = await asyncio.to_thread(write, file)
        if target is None:
            await asyncio.to_thread(_copy_to_stdout, file)
        else:
            await _upload(file, target, content)
    return made


def write_atomically(path: Path, write: Callable[[Path], R]) -> R:
    """What `write(file)` returns, its file having taken the place of the one at `path`.  Raises Fatal."""
    if path.exists() and not path.is_file():
        raise Fatal(f"cannot write {path}: it is no regular file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        new = Path(name)
        try:
            made = write(new)
            os.fsync(descriptor)
            new.chmod(0o644)
            new.replace(path)
        except BaseException:
            new.unlink()
            raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Fatal(f"cannot write {path}: {error.strerror or error}") from error
    return made


def _copy_to_stdout(file: Path) -> None:
    """Copy a file to stdout, to the last byte."""
    with file.open("rb") as written:
        shutil.copyfileobj(written, sys.stdout.buffer)
    sys.stdout.flush()  # what was not given must not be marked


async def _upload(file: Path, url: str, content: Content) -> None:
    """Write an object.  Raises as `write_to_target` does."""
    try:
        await upload(file, url, content)
    except Transient as error:
        raise Transient(f"cannot write {url}: {error}", error.reason) from error
    except NeardupError as error:
        raise Fatal(f"cannot write {url}: {error}") from error
