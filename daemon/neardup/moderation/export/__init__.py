"""The flagged pairs as files for review: what is told of a pair, the formats, and how a file comes to its place."""
