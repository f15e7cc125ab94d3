"""The review desk: a local web application where moderators read cases of flagged pairs and give their verdicts.

`app` has its routes, and the function of each says what its address takes.  `security` and `moderators` stand before
every page, `pages` and `parts` have what every page needs, `addresses` what addresses name, `deciding` the verdicts.
`api` is the same as JSON, for programs.  Every page works without scripts.
"""
