"""The commands; nothing but parsing, wiring and exit codes."""

from neardup.cli import dead_letters, insights, maintenance, moderation, runs
from neardup.cli.base import main

__all__ = ["dead_letters", "insights", "main", "maintenance", "moderation", "runs"]
