"""Who is compared with whom: what nominates the pairs that are worth verifying.

- `fingerprints`: by whole texts, the stories that a lookup of SimHash and signature bands finds.
- `passages`: by passages, the stories that share passage hashes; and the passages that too many stories share.
- `in_memory`: both, for texts in memory, without an index and a ledger.
- `matches`: what was nominated, as the ledger records it.
"""
