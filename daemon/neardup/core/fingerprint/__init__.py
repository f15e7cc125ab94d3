"""A story's fingerprint: the reference of each algorithm, and the version that says when one changes."""
