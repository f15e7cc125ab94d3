"""Questions about texts and stories.

With a ledger: `check` (is this text copied?); `submissions` stores what was checked; `compare` shows the evidence for a
pair, and `similarity` that for a story; `search` finds stories; `proof` shows since when a text is known.  Without one:
`texts`, the library's functions for texts at hand.
"""
