"""The audit: some of the day's stories are compared with all others, without the index."""
