"""Benchmarks."""

import neardup.cli  # noqa: F401 - before numpy: it says how many threads multiply matrices
