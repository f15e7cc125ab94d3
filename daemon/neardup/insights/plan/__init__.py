"""`neardup plan`: what a corpus will take, of memory, disk and time, before a night is spent on it.

sample       lists the source, reads some pages of each language
profile      what of a language's stories decides sizes, measured on a sample or typical
times        the costs of a story, and which of them limits a run
project      the sizes of all of it together; those of an index or a ledger are projected in their own rooms
facts        what the command has to tell
tables       the same, for people
"""
