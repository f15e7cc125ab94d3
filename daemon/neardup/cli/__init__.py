"""The commands: parsing, wiring and exit codes, nothing else."""

import os

# Before numpy is imported.  The matrices here are small: the threads of a product wait longer for each other than one
# alone takes, and keep every core from other programs meanwhile.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from neardup.cli.group import main

__all__ = ["main"]
