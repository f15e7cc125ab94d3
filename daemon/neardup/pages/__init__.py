"""Pages: where they are, how they are fetched, and the processes that read them.

Callers use `reader_pool`, and `text_cache` for texts to compare; `results` says what they get, and `limits` what stops
or slows them.  `store` and `s3` fetch.  A `reader_process` fetches and fingerprints; `fork_server` forks it,
`reader_rpc` is the connection to it, and `watchdog` says what a page may cost.
"""
