"""The index of passage hashes: a tail in memory, and immutable segments on disk.

`index` is what others use.  A `segment` is a file, the `folder` says which there are, the `tail` is what no segment
holds yet, and `postings` is the form of both in memory.  `lookup` and `join` find who shares passages with whom.
"""
