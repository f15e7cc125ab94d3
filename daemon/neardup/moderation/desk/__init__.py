"""The review desk: a local web application where moderators read cases of flagged pairs and give their verdicts.

    /                               the cases; ?language= kind= status= similarity= author= authors= since=
                                    until= inbox= sort= page=
    /case/ID                        the case of a story, with the query of the queue of cases and the position at=;
                                    page= of its pairs
    /search?q=                      a story or an author by id, stories by words of the title, or by a sentence
    /pair/A/B                       the evidence for a pair and its verdicts; takes the query of its case, and word=
    /story/ID                       the similarity report of a story
    /story/ID/file                  the case file of a story as a page to keep; /story/ID/file.pdf as PDF
    /story/ID/proof                 the signed proof since when the texts of a story are known, as JSON
    /author/ID                      an author's record and flagged stories, whom they copied and who copied them;
                                    ?with= page=
    /author/ID/hide                 POST: ask the platform to hide the author's stories until they are decided
    /author/ID/show                 POST: take that back
    /authors                        the authors of several stories that copy; ?page=
    /statistics                     what was decided in the last 30 days, how fast and how alike, and what waits
    /pair/A/B/verdict               POST: give a verdict on a pair
    /case/ID/verdict                POST: give one verdict on the open pairs of a case, or on all but chosen ones
    /case/ID/reopen                 POST: take back the verdicts on a case, for a reason
    /cases/verdict                  POST: give one verdict on chosen cases
    /second                         the next case for a blind second review
    /second/ID/verdict              POST: judge it
    /decisions                      one's last decisions, each with its undo
    /undo/DECISION                  POST: undo a verdict
    /login /logout /name            the access token and the moderator's name
    /api/                           cases and verdicts as JSON, for programs; see neardup.moderation.desk.api, and
                                    /api/openapi.json
    /healthz /metrics               for a container's engine and Prometheus; see neardup.moderation.desk.app
    /static/                        style sheets, the script of the keyboard shortcuts

Every page works without scripts.
"""
