"""What the HTTP servers share, `neardup serve` and the review desk: neither knows the other.

`server` listens, `problems` are the failures that requests end in, `tokens` say who asks, `bodies` reads what they
send, and `login_limit` slows down those who guess.
"""
