"""Writes a file atomically to a target: a path, an S3 object, or stdout."""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from neardup.config import Content
from neardup.errors import Fatal, NeardupError, Transient, needs_extra
from neardup.option_values import Target

R = TypeVar("R")
MODE = 0o640  # titles and passages of stories concern the group at most


async def write_to_target(target: Target | None, content: Content, write: Callable[[Path], R]) -> R:
    """Have `write` write a local file, put it at the target (None is stdout), and return the result of `write`.

    S3's endpoint and region are those of the section [content].  Raises Fatal if the file or object cannot be written,
    Transient if S3 does not answer; in both cases what the target held before is unchanged.
    """
    if isinstance(target, Path):
        return await asyncio.to_thread(write_atomically, target.resolve(), write)
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        file = Path(folder) / "export"
        result = await asyncio.to_thread(write, file)
        if target is None:
            await asyncio.to_thread(_copy_to_stdout, file)
        else:
            await _upload(file, target, content)
    return result


def write_atomically(path: Path, write: Callable[[Path], R]) -> R:
    """Have `write` write a temporary file, move it to `path`, and return the result of `write`.

    Raises Fatal if the file cannot be written.
    """
    if path.exists() and not path.is_file():
        raise Fatal(f"cannot write {path}: it is not a regular file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        new = Path(name)
        try:
            result = write(new)
            os.fsync(descriptor)
            new.chmod(MODE)
            new.replace(path)
        except BaseException:
            new.unlink()
            raise
        finally:
            os.close(descriptor)
    except OSError as error:
        raise Fatal(f"cannot write {path}: {error.strerror or error}") from error
    return result


def _copy_to_stdout(file: Path) -> None:
    with file.open("rb") as written:
        shutil.copyfileobj(written, sys.stdout.buffer)
    sys.stdout.flush()  # a failed write must raise here, before the flags are marked as exported


async def _upload(file: Path, url: str, content: Content) -> None:
    """Upload a file to an S3 URL.  Raises the same errors as `write_to_target`."""
    with needs_extra("aws", url):
        from neardup.s3.objects import upload

    try:
        await upload(file, url, content)
    except Transient as error:
        raise Transient(f"cannot write {url}: {error}", error.reason) from error
    except NeardupError as error:
        raise Fatal(f"cannot write {url}: {error}") from error
