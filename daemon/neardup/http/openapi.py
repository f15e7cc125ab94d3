"""The OpenAPI 3.1 document of an API, made from the table of its operations and from the models of their messages.

An API says of each operation what is its own; how that is written, and what every document has, is here.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from neardup import __version__
from neardup.http.requests import CONTENT_TYPE, INVALID, MALFORMED, NO_HTTP, NOT_JSON, SLOW, TOO_LARGE, ProblemType

REFERENCE = "#/components/schemas/{model}"
WITH_BODY = (MALFORMED, SLOW, TOO_LARGE, NOT_JSON, INVALID)  # what an operation that takes a body may end in
BY_TOKEN = {"token": list[str]()}  # how an operation admits a request: by the bearer token of RFC 6750

Json = dict[str, Any]


class Described(Struct, frozen=True):
    """What a document says of an operation.  `security` has the ways to be admitted; {} is the one without a token."""

    name: str
    method: str
    path: str
    summary: str
    description: str
    security: list[dict[str, list[str]]]
    parameters: list[Json]
    request: type[BaseModel] | None
    answer: type[BaseModel]
    problems: Iterable[ProblemType]


def make_document(description: str, operations: Iterable[Described], problem: type[BaseModel]) -> Json:
    """The document of an API whose failures have the members of `problem`."""
    described = list(operations)
    requests = [(operation.request, "validation") for operation in described if operation.request is not None]
    answers = [(operation.answer, "serialization") for operation in described]
    _, definitions = models_json_schema(
        [*requests, *answers, (problem, "serialization")],  # type: ignore[list-item]
        ref_template=REFERENCE,
    )
    paths: dict[str, Json] = {}
    for operation in described:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _describe_operation(operation, problem)
    return {
        "openapi": "3.1.0",
        "info": {"title": "neardup", "version": __version__, "description": description},
        "paths": paths,
        "components": {
            "schemas": definitions["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def make_path_parameter(name: str, description: str, schema: Json) -> Json:
    """A placeholder of a path."""
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


def list_query_parameters(query: type[BaseModel]) -> Iterator[Json]:
    """The parameters of a query, each with the description of its field."""
    for name, schema in query.model_json_schema()["properties"].items():
        described, is_required = schema.pop("description"), query.model_fields[name].is_required()
        yield {"name": name, "in": "query", "required": is_required, "description": described, "schema": schema}


def _describe_operation(operation: Described, problem: type[BaseModel]) -> Json:
    described: Json = {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.description,
        "security": operation.security,
        "parameters": operation.parameters,
        "responses": {"200": _content("The answer", "application/json", operation.answer)},
    }
    if operation.request is not None:
        body = _content("The request", "application/json", operation.request)
        described["requestBody"] = {"required": True, "content": body["content"]}
    by_status: dict[int, list[ProblemType]] = {}
    for kind in dict.fromkeys((NO_HTTP, *operation.problems)):  # a header may break HTTP whatever the operation
        by_status.setdefault(kind.status, []).append(kind)
    for status, kinds in sorted(by_status.items()):
        titles = ", or: ".join(f"{kind.title} (`{kind.uri}`)" for kind in kinds)
        described["responses"][str(status)] = _content(titles, CONTENT_TYPE, problem)
    return described


def _content(description: str, media_type: str, model: type[BaseModel]) -> Json:
    schema = {"$ref": REFERENCE.format(model=model.__name__)}
    return {"description": description, "content": {media_type: {"schema": schema}}}
