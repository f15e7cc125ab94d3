"""The indexes that nominate candidates, all derived from the ledger.

`protocol` is the contract of a candidate index by fingerprints; `backends` opens the one in SQLite (`sqlite`) or in
Redis (`redis`, an extra).  `packed_buckets` and `positions` are what these have in common; `spread` and `size` project
what they will hold and take.  `passages` is the index of passage hashes, `titles` that of the words of titles.
"""
