"""Self-checks: measure how much the live index misses."""
