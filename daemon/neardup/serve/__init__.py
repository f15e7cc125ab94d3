"""The check before publication, over HTTP.

    request --> middlewares --> endpoint --> lane --> operation --> checker, submissions, ledger
                (request id,    (token,      (turn)   (models in,
                metrics,        body)                 models out)
                problems)

An operation stands in one place, in `stories` or in `rights`, which are those of authors: its route, and what it does.
The routes and the OpenAPI document are both made from these.
"""
