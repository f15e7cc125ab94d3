"""`neardup plan`: projects the memory, disk space and time that a corpus needs, before a long backfill begins.

sample       lists the source, and reads some pages of each language
profile      the properties of a language's stories that decide sizes, measured on a sample or typical
times        the costs of a story, and the stage that limits a run
project      the sizes of the whole corpus, by the projections of the index and ledger packages
passages     the passage index: its size, and the reads of a day's lookups
facts        the projection as one JSON object
tables       the projection as tables
"""
