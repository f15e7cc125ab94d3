"""Which fingerprints are worth comparing: bands, joins of buckets and of passage hashes, and the best matches."""
