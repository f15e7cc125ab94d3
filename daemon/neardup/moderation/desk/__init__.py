"""The review desk: a local web application where moderators read flagged pairs and give their verdicts.

    /                               the queue; ?view= language= kind= status= score= similarity= author= story=
                                    cluster= same_author= page=
    /search?q=                      the queue of a story or an author
    /pair/A/B                       the evidence for a pair and its verdicts; takes a queue's query, at= and word=
    /story/ID                       the similarity report of a story; takes a queue's query and the position at=
    /cluster/ID                     the cluster of a story
    /pair/A/B/verdict               POST: give a verdict on a pair
    /cluster/ID/verdict             POST: give one verdict on all pairs of a cluster
    /story/ID/verdict               POST: give one verdict on the open pairs of a story with its sources
    /undo/DECISION                  POST: undo a verdict
    /login /logout /name            the access token and the moderator's name
    /static/                        style sheets, the script of the keyboard shortcuts

Every page works without scripts.
"""
