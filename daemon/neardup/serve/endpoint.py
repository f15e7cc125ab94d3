"""Between HTTP and an operation: the right of the token, the body, a turn in a lane, and the answer."""

from typing import Any

from aiohttp import web
from pydantic import BaseModel, ValidationError

from neardup.problem_types import FORBIDDEN, INVALID, MALFORMED, NOT_JSON, TOO_LARGE, UNAUTHENTICATED
from neardup.serve.answers import Answer, InvalidMember
from neardup.serve.lanes import Deadline, Lane
from neardup.serve.middlewares import TOKEN_NAME, Handler
from neardup.serve.operations import Operation
from neardup.serve.problems import Refused
from neardup.serve.service import SERVICE, Service
from neardup.serve.story_ids import StoryId, story_id_of
from neardup.serve.tokens import Right

LONG_BODY_BYTES = 131_072  # a story of 5,000 words in UTF-8
SCHEME = "Bearer "


def endpoint(operation: Operation) -> Handler:
    """The handler of an operation's route."""

    async def handle(request: web.Request) -> web.Response:
        service = request.app[SERVICE]
        deadline = Deadline(service.section.deadline_seconds)
        authorize(request, operation.right)
        story_id = _story_id(request) if operation.takes_id else None
        if operation.request is not None:
            _expect_json(request, service.section.max_body_bytes)
        parts = service.parts

        async def work() -> Answer:
            body = None if operation.request is None else _parsed(operation.request, await request.read())
            return await operation.begin(parts, story_id, body, deadline)

        answer = await _lane(service, operation, request).carry_out(work(), deadline)
        return web.Response(text=answer.model_dump_json(), content_type="application/json")

    return handle


def authorize(request: web.Request, right: Right | None) -> None:
    """Let a request pass whose token has the right, or any token if `right` is None.  Raises Refused."""
    tokens = request.app[SERVICE].tokens
    if tokens is None:
        return
    given = request.headers.get("Authorization", "")
    token = tokens.find(given.removeprefix(SCHEME)) if given.startswith(SCHEME) else None
    if token is None:
        raise Refused(UNAUTHENTICATED, "send the header `Authorization: Bearer TOKEN` with a valid token")
    request[TOKEN_NAME] = token.name
    if right is not None and right not in token.rights:
        raise Refused(FORBIDDEN, f"the token {token.name} does not have the right {right}")


def _story_id(request: web.Request) -> StoryId:
    try:
        return story_id_of(request.match_info["id"])
    except ValueError as error:
        raise Refused(INVALID, str(error), errors=(InvalidMember(where="id", what=str(error)),)) from None


def _expect_json(request: web.Request, max_bytes: int) -> None:
    if request.content_type != "application/json":
        raise Refused(NOT_JSON, "send the header `Content-Type: application/json`")
    if (request.content_length or 0) > max_bytes:
        raise Refused(TOO_LARGE, f"a body has at most {max_bytes:,} bytes")


def _lane(service: Service, operation: Operation, request: web.Request) -> Lane:
    size = request.content_length
    is_long = operation.lane == "long" or (operation.lane == "by size" and (size is None or size > LONG_BODY_BYTES))
    return service.long if is_long else service.short


def _parsed(model: type[BaseModel], body: bytes) -> BaseModel:
    """The body as a model.  Raises Refused, which names every wrong member, and never quotes the story."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_input=False, include_context=False)
    if any(one["type"] == "json_invalid" for one in wrong):
        raise Refused(MALFORMED, wrong[0]["msg"])
    errors = tuple(_invalid_member(one) for one in wrong)
    raise Refused(
        INVALID, "; ".join(f"{one.where}: {one.what}" if one.where else one.what for one in errors), errors=errors
    )


def _invalid_member(error: Any) -> InvalidMember:
    what = "unknown member" if error["type"] == "extra_forbidden" else str(error["msg"]).removeprefix("Value error, ")
    return InvalidMember(where=".".join(map(str, error["loc"])), what=what)
