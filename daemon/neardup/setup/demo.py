"""The bundled sample stories, copied into a folder with a configuration and a ledger of their own."""

import shutil
from importlib.resources import as_file, files
from pathlib import Path

from neardup.errors import Fatal, Misuse

CONFIG = "config.toml"


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
