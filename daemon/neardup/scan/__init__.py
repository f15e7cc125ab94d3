"""`neardup scan`: the copies among documents, in one pass over columns in memory.

`request` says what to scan, `workers` are the processes, `reading` is what they do with documents and `comparing` what
they do with pairs, `job` is the whole.  What it finds is put into a ledger, which the commands on flags read.
"""
