"""The evidence for a pair or a story, for a page (`page`, `story_report`) or a terminal (`terminal`).

`alignment` cuts the texts into highlighted fragments for all of them.
"""
