"""Exports of what was flagged: `write` selects, `tables` has the columns, `formats` and `page` the files.

`target` puts a file in its place, atomically; other rooms use it, too.
"""
