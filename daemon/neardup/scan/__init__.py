"""`neardup scan`: the copies among documents, in one pass over columns in memory.

`request` says what to scan, `workers` are the processes, `documents` is what they do, `job` is the whole.  What it
finds is put into a ledger, which the commands on flags read.
"""
