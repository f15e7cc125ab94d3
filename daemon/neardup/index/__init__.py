"""The indexes that nominate candidates, all derived from the ledger.

`protocol` is the contract of a candidate index by fingerprints, which is in SQLite (`sqlite`) or in Redis (`redis`, an
extra); `packed_buckets` are what these have in common.  `passages` is the index of passage hashes, `words` that of the
words of titles and texts.
"""
