"""The check before publication, over HTTP.

    request --> middlewares --> endpoint --> lane --> operation --> checker, submissions, ledger
                (request id,    (right,      (turn)   (models in,
                metrics,        body)                 models out)
                problems)

`operations.OPERATIONS` is the one table of the API: the routes and the OpenAPI document are both made from it.
"""
