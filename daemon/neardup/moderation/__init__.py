"""What moderators read and decide: the review desk, the evidence for what is flagged, and what they take away.

`desk` is the web application, `evidence` the pages and reports of pairs and stories, `export` the tables and pages of
what was flagged, `case_file` the record of one case.  All speak by `wording`, in the language of `interface`, and
render by `templating`; `webhook` notifies others.
"""
