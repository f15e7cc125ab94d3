"""The OpenAPI document of the desk's JSON API: what `http.openapi` is to say of each operation of the table."""

import json
from functools import cache
from typing import Any

from aiohttp import web

from neardup.http.openapi import BY_TOKEN, Described, list_query_parameters, make_document, make_path_parameter
from neardup.moderation.desk.api import OPERATIONS, Operation, make_endpoint
from neardup.moderation.desk.api_messages import Problem
from neardup.moderation.desk.queues import MAX_NUMBER
from neardup.source.parse import LONGEST_NAME

DOCUMENT = "/api/openapi.json"
STORY_ID = {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME}
NUMBER = {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}
PARAMETERS = {
    "story": make_path_parameter("story", "The id of a story in the listing: an integer, or a name.", STORY_ID),
    "a": make_path_parameter("a", "The id of one story.", STORY_ID),
    "b": make_path_parameter("b", "The id of the other story.", STORY_ID),
    "author": make_path_parameter(
        "author", "The author's id: an integer, or a text.", {"type": "string", "minLength": 1}
    ),
    "decision": make_path_parameter("decision", "The number of the decision.", NUMBER),
    "number": make_path_parameter("number", "The number of the complaint.", NUMBER),
}


def describe_api() -> dict[str, Any]:
    """The OpenAPI document."""
    return make_document("The cases and verdicts of the review desk.", map(_describe, OPERATIONS), Problem)


def _describe(operation: Operation) -> Described:
    return Described(
        operation.work.__name__,
        operation.method,
        operation.path,
        operation.summary,
        "Takes the token of a moderator.",
        [BY_TOKEN],
        [
            *(PARAMETERS[name] for name in operation.names),
            *(list_query_parameters(operation.query) if operation.query else []),
        ],
        operation.request,
        operation.answer,
        operation.all_problems,
    )


@cache
def _dump_document() -> str:
    return json.dumps(describe_api())


async def show_document(_: web.Request) -> web.Response:
    """GET /api/openapi.json, for which no token is needed."""
    return web.Response(text=_dump_document(), content_type="application/json")


ROUTES = (
    web.get(DOCUMENT, show_document),
    *(web.route(operation.method, operation.route, make_endpoint(operation)) for operation in OPERATIONS),
)
