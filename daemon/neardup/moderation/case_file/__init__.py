"""The case file of a story: what was found and decided, on a few pages that stand by themselves, and the notice.

The case is a story with its sources.  `content` gathers it, `render` makes HTML, PDF, and the notice to the author.
"""
