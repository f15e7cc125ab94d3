"""`neardup plan`: projects the memory, disk space and time that a corpus needs, before a long backfill begins.

sample       lists the source, and measures costs and profiles of languages on some pages
project      the sizes and times of the whole corpus, as one JSON object
tables       the projection as tables
"""
