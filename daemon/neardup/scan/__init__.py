"""`neardup scan`: the copies among documents, in one pass over columns in memory.

`request` says what to scan, `processes` do it, `job` is the whole.  What it finds is put into a ledger, which the
commands on flags read.
"""
