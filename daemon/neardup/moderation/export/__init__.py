"""Exports of the flagged pairs: the columns, the file formats, and writing to the destination."""
