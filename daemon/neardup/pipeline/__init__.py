"""What a run, a sweep and the upkeep of the indexes do with stories.

`run` and `sweep` are jobs, for `run_lifecycle.carry_out`; `summary` has what they count and report.  `stages` couples
the source with `worker` (pages become outcomes) and `writer` (outcomes become stories and candidates on record); beside
them, `verifier` makes flags of candidates.  `index_sync` and `passage_sync` keep the indexes in step with the ledger,
`index_check` compares them with it, and `upkeep` looks up once more the stories that were submitted.
`fingerprint_file` has the fingerprints of stories in Parquet.
"""
