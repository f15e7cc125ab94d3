"""Who is compared with whom: what nominates the pairs that are worth verifying.

By whole texts, whose SimHashes or signatures are alike, and by passages, of which two texts share some hashes.  What is
nominated are `Matches`: a story, and the stories that it is to be compared with, the best first.

- `lookup`: for stories that are looked up in the indexes, and for a text that is checked.
- `passages`: the lookups by passages, and the passages that too many stories share to nominate any.
- `in_memory`: among texts in memory, without an index and a ledger, for scans and the library.
- `exhaustive`: by reading everything, for audits.

A sweep and a cluster compare all stories with each other, by the kernels of `core.candidates`.
"""
