"""The commands; nothing but parsing, wiring and exit codes."""

from daemon.cli import care, letters, measuring, moderation, pipeline
from daemon.cli.base import main

__all__ = ["care", "letters", "main", "measuring", "moderation", "pipeline"]
