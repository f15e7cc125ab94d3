"""The commands: parsing, wiring and exit codes, nothing else."""

from neardup.cli.group import main

__all__ = ["main"]
