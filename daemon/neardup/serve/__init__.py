"""The check before publication, over HTTP.

    request --> middlewares --> endpoint --> lane --> operation --> checker, submissions, ledger
                (request id,    (right,      (turn)   (models in,
                metrics,        body)                 models out)
                problems)

An operation stands in one place, in `stories` or `rights`: its route, and what it does.  The routes and the OpenAPI
document are both made from these.
"""
