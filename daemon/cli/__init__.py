"""The commands; nothing but parsing, wiring and exit codes."""

from daemon.cli import care, measuring, moderation, pipeline
from daemon.cli.base import main

__all__ = ["care", "main", "measuring", "moderation", "pipeline"]
