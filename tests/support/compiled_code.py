"""The machine code that earlier commands have left, copied so that a process with its own cache compiles little."""

import shutil
from collections.abc import Collection
from hashlib import sha1
from pathlib import Path

from tests.support.paths import ROOT


def copy_compiled(cache: Path, without: Collection[str] = ()) -> None:
    """Fill a folder, for NUMBA_CACHE_DIR, with what is compiled, except the functions named `module.function`."""
    for compiled in (ROOT / "daemon").rglob("__pycache__"):
        source = compiled.parent
        # the name of the folder that numba reads, by `get_suitable_cache_subpath` in its caching.py
        target = cache / f"{source.name}_{sha1(str(source).encode()).hexdigest()}"
        for path in compiled.glob("*.nb[ic]"):
            if path.name.partition("-")[0] not in without:
                target.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target / path.name)
