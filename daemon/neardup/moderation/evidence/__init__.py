"""The evidence for a pair or a story, for a page (`page`, `story_report`, `graph`) or a terminal (`terminal`).

`alignment` cuts the texts into marked fragments for all of them.
"""
