"""The review desk: a local web application where moderators read flagged pairs and judge them.

    /                               the queue; ?language= kind= status= score= author= story= cluster= page=
    /search?q=                      the queue of a story or an author
    /pair/A/B                       the evidence for a pair, and its verdicts; with a queue's query and at=, its place
    /cluster/ID                     the cluster that a story stands in
    /pair/A/B/verdict               POST: judge a pair
    /cluster/ID/verdict             POST: judge all pairs of a cluster alike
    /undo/DECISION                  POST: take a verdict back
    /login /name                    who sits here
    /static/                        style sheets, the script of the keyboard shortcuts

All of it works without scripts.
"""
