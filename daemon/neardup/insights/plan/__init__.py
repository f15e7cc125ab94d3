"""`neardup plan`: what a corpus will take, of memory, disk and time, before a night is spent on it.

sample       lists the source, reads some pages of each language
profile      what of a language's stories decides sizes, measured on a sample or typical
spread       how unevenly stories fill the values of a band, from one number
redis_size   the bytes of an index in Redis, allocation by allocation
sqlite_size  the bytes of ledger and embedded index, page by page
times        the costs of a story, and which of them limits a run
project      the sizes of all of it together
facts        what the command has to tell
tables       the same, for people
"""
