"""Meaning: the vectors of stories, by which translated and retold copies are found.

A story's first chunks of words become unit vectors (`chunks`, `embedders`), which are centred by language (`centring`)
and kept in a file beside the ledger.  A binary code of each story serves the scan for its neighbours (`codes`).
"""
