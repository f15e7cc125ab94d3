"""neardup: a near-duplicate and plagiarism detection daemon.

    source ──▶ jobs ──▶ workers ──▶ outcomes ──▶ writer ──▶ candidates ──▶ verifier ──▶ flags
   (athena,   queue   (fetch,       queue      (look up,    (ledger)     (exact         (ledger,
   manifest)           extract,                 commit,                   arithmetic)    export)
                       fingerprint)             index)

The two queues are bounded: they are the only coupling between the stages and the only
backpressure.  The ledger (SQLite) is the truth; the index (SQLite or Redis) is derived from it.
"""

__version__ = "0.1.0"
