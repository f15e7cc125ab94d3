"""Makes the names of files survive a power cut."""

import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: those created, renamed and deleted so far.  Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
