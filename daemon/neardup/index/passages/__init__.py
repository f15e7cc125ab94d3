"""The index of passage hashes: a tail in memory, and immutable segments on disk.

`index` is what others use, and finds who shares passages with a text.  A `segment` is a file, the `folder` says which
there are, `postings` is their form in memory, and `join` finds all who share passages.
"""
