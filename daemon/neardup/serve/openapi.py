"""The OpenAPI 3.1 document of the API, made from the table of operations and the models."""

from collections.abc import Iterator
from typing import Any

from pydantic.json_schema import models_json_schema

from neardup import __version__
from neardup.http.problems import (
    CONTENT_TYPE,
    FAILED,
    FORBIDDEN,
    INVALID,
    MALFORMED,
    NOT_JSON,
    OTHER_HOST,
    SLOW,
    TOO_LARGE,
    UNAUTHENTICATED,
    UNAVAILABLE,
    ProblemType,
)
from neardup.serve.messages import Problem
from neardup.serve.operations import MAX_NUMBER, OPERATIONS, Operation
from neardup.serve.service import BUSY
from neardup.source.parse import LONGEST_NAME

REFERENCE = "#/components/schemas/{model}"
ALWAYS = (UNAUTHENTICATED, FORBIDDEN, OTHER_HOST, BUSY, FAILED, UNAVAILABLE)
WITH_BODY = (MALFORMED, SLOW, TOO_LARGE, NOT_JSON, INVALID)
SUBJECTS = {
    "id": {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The story's id in the listing: an integer, or a name.",
        "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
    },
    "author": {
        "name": "author",
        "in": "path",
        "required": True,
        "description": "The author's id: an integer, or a text.",
        "schema": {"type": "string", "minLength": 1},
    },
    "number": {
        "name": "number",
        "in": "path",
        "required": True,
        "description": "The number of the complaint or permission.",
        "schema": {"type": "integer", "minimum": 0, "maximum": MAX_NUMBER},
    },
}
REQUEST_ID = {
    "name": "X-Request-ID",
    "in": "header",
    "description": "Comes back in the answer, and stands in the service's log lines.",
    "schema": {"type": "string", "maxLength": 64},
}


def document() -> dict[str, Any]:
    """The OpenAPI document."""
    requests = [(operation.request, "validation") for operation in OPERATIONS if operation.request is not None]
    answers = [(operation.answer, "serialization") for operation in OPERATIONS]
    _, definitions = models_json_schema(
        [*requests, *answers, (Problem, "serialization")],  # type: ignore[list-item]
        ref_template=REFERENCE,
    )
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe_operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "neardup",
            "version": __version__,
            "description": "Is this story a copy, of what, and where?  Asked before publication.",
        },
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _describe_operation(operation: Operation) -> dict[str, Any]:
    of_author = ", or the token of the author" if operation.admits_author else ""
    described: dict[str, Any] = {
        "operationId": operation.work.__name__,
        "summary": operation.summary,
        "description": f"Takes a token with the right `{operation.right}`{of_author}, if the service has tokens.",
        "security": [{}, {"token": []}],
        "parameters": [*_parameters_of(operation), REQUEST_ID],
        "responses": {"200": _content("The answer", "application/json", operation.answer.__name__)},
    }
    if operation.request is not None:
        body = _content("The request", "application/json", operation.request.__name__)
        described["requestBody"] = {"required": True, "content": body["content"]}
    for status, problems in _problems_of(operation).items():
        titles = ", or: ".join(f"{problem.title} (`{problem.uri}`)" for problem in problems)
        described["responses"][str(status)] = _content(titles, CONTENT_TYPE, Problem.__name__)
    return described


def _parameters_of(operation: Operation) -> Iterator[dict[str, Any]]:
    if operation.subject is not None:
        yield SUBJECTS[operation.subject]
    if operation.query is not None:
        for name, schema in operation.query.model_json_schema()["properties"].items():
            described, is_required = schema.pop("description"), operation.query.model_fields[name].is_required()
            yield {"name": name, "in": "query", "required": is_required, "description": described, "schema": schema}


def _problems_of(operation: Operation) -> dict[int, list[ProblemType]]:
    """The problems that an operation may end in, by status."""
    with_id = (INVALID,) if operation.subject or operation.query else ()
    with_body = WITH_BODY if operation.request is not None else with_id
    by_status: dict[int, list[ProblemType]] = {}
    for problem in (*ALWAYS, *with_body, *operation.problems):
        by_status.setdefault(problem.status, []).append(problem)
    return dict(sorted(by_status.items()))


def _content(description: str, media_type: str, model: str) -> dict[str, Any]:
    schema = {"$ref": REFERENCE.format(model=model)}
    return {"description": description, "content": {media_type: {"schema": schema}}}
