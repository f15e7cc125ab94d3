"""What the HTTP servers share, `neardup serve` and the review desk: neither knows the other.

`server` listens, `problems` are the failures that requests end in, `requests` reads what a request brings, and `tokens`
keeps the files of tokens.
"""
