"""What the HTTP servers share, `neardup serve` and the review desk: neither knows the other.

`server` listens, `requests` reads what a request brings and has the failures that one ends in, and `tokens` keeps the
files of tokens.
"""
