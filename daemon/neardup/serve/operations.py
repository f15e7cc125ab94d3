"""What an operation of the API is, and how the OpenAPI document describes it; `stories` and `rights` have them.

An operation is a function of the open parts; of what its path names, its query, its body and its caller, as far as it
takes them; and of a deadline.  It returns its answer, or raises Refused with one of its problems.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property
from inspect import getdoc, signature
from typing import Any, Literal, TypeVar

from msgspec import Struct
from pydantic import BaseModel

from neardup.http.openapi import (
    BY_TOKEN,
    WITH_BODY,
    Described,
    list_query_parameters,
    make_document,
    make_path_parameter,
)
from neardup.http.requests import FAILED, FORBIDDEN, INVALID, OTHER_HOST, UNAUTHENTICATED, UNAVAILABLE, ProblemType
from neardup.option_values import Right
from neardup.serve import messages
from neardup.serve.messages import Problem, StoryId, parse_story_id
from neardup.serve.service import BUSY, Deadline, ServiceParts
from neardup.source.parse import LONGEST_NAME, make_printable

MAX_NUMBER = 2**63 - 1
Work = Callable[..., Awaitable[messages.Answer]]
W = TypeVar("W", bound=Work)
Lane = Literal["by size", "short", "long"]


def parse_author(text: str) -> str:
    """The id of an author in a path.  Raises ValueError."""
    if not (found := make_printable(text)):
        raise ValueError("is empty")
    return found


def parse_number(text: str) -> int:
    """The number of a complaint or permission.  Raises ValueError."""
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX_NUMBER):
        raise ValueError("the number of a complaint or permission is an integer")
    return int(text)


# What a path may name, by its placeholder: how it is read.
SUBJECT_PARSERS: dict[str, Callable[[str], StoryId | int | str]] = {
    "id": parse_story_id,
    "number": parse_number,
    "author": parse_author,
}


class Operation(Struct, frozen=True, dict=True):
    """One operation: `work` does it, and says by its signature what it takes, and answers.

    It is given the parts, what the path names, the query and the body as its parameters `query` and `request` describe
    them, the name of the token as `caller`, and the deadline.  Its name is the operation's id in the OpenAPI document,
    by which generated clients call it: it stays.  Its docstring is the summary there.
    `problems` are those that concern it; every one may end in the others.  `lane` says with which requests it waits for
    its turn: "by size" where the size of the body decides that.  One that `writes` a story waits for those on it that
    came before.  One that `admits_author` takes the token of the author whom its path names in place of one with the
    right.
    """

    method: str
    path: str
    right: Right
    problems: tuple[ProblemType, ...]
    work: Work
    lane: Lane
    writes: bool
    admits_author: bool

    @cached_property
    def subject(self) -> str | None:
        """The one of SUBJECT_PARSERS that the path names."""
        return next((name for name in SUBJECT_PARSERS if f"{{{name}}}" in self.path), None)

    @cached_property
    def takes(self) -> dict[str, type[BaseModel]]:
        """The types of the parameters of `work`, by name."""
        return {name: parameter.annotation for name, parameter in signature(self.work).parameters.items()}

    @property
    def request(self) -> type[BaseModel] | None:
        return self.takes.get("request")

    @property
    def query(self) -> type[BaseModel] | None:
        return self.takes.get("query")

    @property
    def answer(self) -> type[BaseModel]:
        found: type[BaseModel] = signature(self.work).return_annotation
        return found

    @property
    def summary(self) -> str:
        return getdoc(self.work) or ""

    def begin(
        self,
        parts: ServiceParts,
        subject: StoryId | int | str | None,
        query: Any,
        body: Any,
        deadline: Deadline,
        *,
        caller: str,
    ) -> Awaitable[messages.Answer]:
        """Begin the work."""
        given = subject, query, body, caller if "caller" in self.takes else None
        arguments = [argument for argument in given if argument is not None]
        return self.work(parts, *arguments, deadline)


class Operations(list[Operation]):
    """The operations of a module, in the order in which they stand there."""

    def add(
        self,
        method: str,
        path: str,
        right: Right,
        *problems: ProblemType,
        lane: Lane = "short",
        writes: bool = False,
        admits_author: bool = False,
    ) -> Callable[[W], W]:
        """Add the decorated function."""

        def add(work: W) -> W:
            self.append(Operation(method, path, right, problems, work, lane, writes, admits_author))
            return work

        return add


# The OpenAPI document: what `http.openapi` is to say of each operation.

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


def describe_api(operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI document."""
    about = "Is this story a copy, of what, and where?  Asked before publication."
    return make_document(about, map(_describe, operations), Problem)


def _describe(operation: Operation) -> Described:
    of_author = ", or the token of the author" if operation.admits_author else ""
    by_parameters = (INVALID,) if operation.subject or operation.query else ()
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
        (*ALWAYS, *(by_parameters if operation.request is None else WITH_BODY), *operation.problems),
    )
