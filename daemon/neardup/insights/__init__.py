"""Measures and projects: `evaluate` (recall and precision), `plan` (what a corpus needs), `replay`, self-checks.

The self-checks measure how much the live index misses: `canaries` after each daily run, `audit` by a command.
"""
