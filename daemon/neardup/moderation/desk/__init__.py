"""The review desk: a local web application where moderators read flagged pairs and give their verdicts.

    /                               the queue; ?language= kind= status= score= author= story= cluster= page=
    /search?q=                      the queue of a story or an author
    /pair/A/B                       the evidence for a pair and its verdicts; takes a queue's query and the position at=
    /cluster/ID                     the cluster of a story
    /pair/A/B/verdict               POST: give a verdict on a pair
    /cluster/ID/verdict             POST: give one verdict on all pairs of a cluster
    /undo/DECISION                  POST: undo a verdict
    /login /logout /name            the access token and the moderator's name
    /static/                        style sheets, the script of the keyboard shortcuts

Every page works without scripts.
"""
