"""The OpenAPI document of `neardup serve`: what `http.openapi` is to say of each operation of the table."""

from typing import Any

from neardup.http.openapi import (
    BY_TOKEN,
    WITH_BODY,
    Described,
    list_query_parameters,
    make_document,
    make_path_parameter,
)
from neardup.http.problems import FAILED, FORBIDDEN, INVALID, OTHER_HOST, UNAUTHENTICATED, UNAVAILABLE
from neardup.serve.messages import Problem
from neardup.serve.operations import MAX_NUMBER, OPERATIONS, Operation
from neardup.serve.service import BUSY
from neardup.source.parse import LONGEST_NAME

ALWAYS = (UNAUTHENTICATED, FORBIDDEN, OTHER_HOST, BUSY, FAILED, UNAVAILABLE)
SUBJECT_PARAMETERS = {
    "id": make_path_parameter(
        "id",
        "The story's id in the listing: an integer, or a name.",
        {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
    ),
    "author": make_path_parameter(
        "author", "The author's id: an integer, or a text.", {"type": "string", "minLength": 1}
    ),
    "number": make_path_parameter(
        "number", "The number of the complaint or permission.", {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER}
    ),
}
REQUEST_ID = {
    "name": "X-Request-ID",
    "in": "header",
    "description": "Comes back in the answer, and stands in the service's log lines.",
    "schema": {"type": "string", "maxLength": 64},
}


def describe_api() -> dict[str, Any]:
    """The OpenAPI document."""
    about = "Is this story a copy, of what, and where?  Asked before publication."
    return make_document(about, map(_describe, OPERATIONS), Problem)


def _describe(operation: Operation) -> Described:
    of_author = ", or the token of the author" if operation.admits_author else ""
    with_subject = (INVALID,) if operation.subject or operation.query else ()
    return Described(
        operation.work.__name__,
        operation.method,
        operation.path,
        operation.summary,
        f"Takes a token with the right `{operation.right}`{of_author}, if the service has tokens.",
        [{}, BY_TOKEN],
        [
            *([SUBJECT_PARAMETERS[operation.subject]] if operation.subject else []),
            *(list_query_parameters(operation.query) if operation.query else []),
            REQUEST_ID,
        ],
        operation.request,
        operation.answer,
        (*ALWAYS, *(with_subject if operation.request is None else WITH_BODY), *operation.problems),
    )
