"""Questions about texts and stories.

With a ledger: `check` (is this text copied?); `submissions` stores what was checked; `compare` and `similarity` show
`evidence`; `search` finds stories; `proof` shows since when a text is known.  Without one: `texts` and `copies`, the
library's functions for texts at hand.
"""
