"""Measures and projects: `evaluate` (recall and precision), `plan` (what a corpus needs), `replay`, self-checks.

`evaluate` makes `copies` from a `corpus` by `edits` and `disguises`, or reads the `truth`; `meaning` fits thresholds.
"""
