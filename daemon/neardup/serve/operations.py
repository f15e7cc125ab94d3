"""The operations of the API: what each does, and the one table of them.

An operation is a function of the open parts; of what its path names, its query, its body and its caller, as far as it
takes them; and of a deadline.  It returns its answer, or raises Refused.  The routes and the OpenAPI document are made
from the table.
"""

from collections.abc import Awaitable, Callable
from functools import cached_property
from inspect import signature
from typing import Any, Literal

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
from neardup.serve import messages, rights, stories
from neardup.serve.messages import Problem, StoryId, parse_story_id
from neardup.serve.service import BUSY, Deadline, ServiceParts
from neardup.serve.tokens import EXPIRED_TOKEN
from neardup.source.parse import LONGEST_NAME, make_printable

MAX_NUMBER = 2**63 - 1


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
    by which generated clients call it: it stays.
    `lane` says with which requests it waits for its turn: "by size" where the size of the body decides that.
    `problems` are those that concern it; every one may end in the others.  One that `writes` a story waits for those on
    it that came before.  One that `admits_author` takes the token of the author whom its path names in place of one
    with the right.
    """

    method: str
    path: str
    summary: str
    right: Right
    work: Callable[..., Awaitable[messages.Answer]]
    lane: Literal["by size", "short", "long"] = "short"
    problems: tuple[ProblemType, ...] = ()
    writes: bool = False
    admits_author: bool = False

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


OPERATIONS = (
    Operation(
        "POST",
        "/v1/check",
        "Check a story against those on record; nothing is stored",
        Right.CHECK,
        stories.check,
        lane="by size",
        problems=(stories.NO_STORY,),
    ),
    Operation(
        "POST",
        "/v1/check:batch",
        f"Check up to {messages.MOST_STORIES} stories, each by itself",
        Right.CHECK,
        stories.check_batch,
        lane="long",
    ),
    Operation(
        "POST",
        "/v1/compare",
        "Compare two stories",
        Right.CHECK,
        stories.compare,
        lane="long",
        problems=(stories.NO_STORY, stories.UNKNOWN_STORY),
    ),
    Operation(
        "GET",
        "/v1/stories/{id}",
        "Show a story on record",
        Right.CHECK,
        stories.story_of,
        problems=(stories.UNKNOWN_STORY,),
    ),
    Operation(
        "GET",
        "/v1/stories/{id}/matches",
        "Show the flagged pairs of a story on record",
        Right.CHECK,
        stories.matches_of,
        problems=(stories.UNKNOWN_STORY,),
    ),
    Operation(
        "GET",
        "/v1/stories/{id}/proof",
        "Prove since when the texts of a story are known",
        Right.CHECK,
        stories.proof_of,
        problems=(stories.NO_PROOF,),
    ),
    Operation(
        "PUT",
        "/v1/stories/{id}",
        "Check a story and store it; the same request again changes nothing",
        Right.STORE,
        stories.put,
        lane="by size",
        problems=(stories.NO_STORY, stories.FORGOTTEN),
        writes=True,
    ),
    Operation(
        "PUT",
        "/v1/drafts/{id}",
        "Store a draft, in place of the former one, and check it; what its author wrote before is no match",
        Right.STORE,
        stories.put_draft,
        lane="by size",
        problems=(stories.NO_STORY, stories.FORGOTTEN, stories.OTHER_AUTHOR),
        writes=True,
    ),
    Operation(
        "POST",
        "/v1/drafts/{id}/check",
        "Check a draft again, as it was saved last",
        Right.CHECK,
        stories.check_draft,
        lane="long",
        problems=(stories.NO_STORY, stories.UNKNOWN_DRAFT, stories.OTHER_AUTHOR),
    ),
    Operation(
        "GET",
        "/v1/drafts/{id}",
        "Show when a draft was saved, and when it expires",
        Right.CHECK,
        stories.draft_of,
        problems=(stories.UNKNOWN_DRAFT,),
    ),
    Operation(
        "DELETE",
        "/v1/drafts/{id}",
        "Discard a draft",
        Right.STORE,
        stories.discard_draft,
        problems=(stories.UNKNOWN_DRAFT,),
        writes=True,
    ),
    Operation(
        "DELETE",
        "/v1/stories/{id}",
        "Forget a story; a later listing does not bring it back",
        Right.FORGET,
        stories.forget,
        writes=True,
        problems=(stories.UNKNOWN_STORY,),
    ),
    Operation(
        "POST",
        "/v1/complaints",
        "Complain of a story; the answer has the number of the complaint, its deadline and the evidence",
        Right.COMPLAIN,
        rights.complain,
        lane="long",
        problems=(stories.UNKNOWN_STORY, rights.OWN_STORY, rights.DUPLICATE_COMPLAINT, stories.NO_STORY),
    ),
    Operation(
        "GET",
        "/v1/complaints",
        "List the open complaints, the next deadline first, or the closed ones",
        Right.COMPLAIN,
        rights.complaints_of,
    ),
    Operation(
        "GET",
        "/v1/complaints/{number}",
        "Show a complaint with its evidence and its log",
        Right.COMPLAIN,
        rights.complaint_of,
        problems=(rights.UNKNOWN_COMPLAINT,),
    ),
    Operation(
        "POST",
        "/v1/complaints/{number}/answers",
        "Record what the author or the complainant answers; the same words again change nothing",
        Right.COMPLAIN,
        rights.answer_complaint,
        problems=(rights.UNKNOWN_COMPLAINT, rights.CLOSED_COMPLAINT),
    ),
    Operation(
        "DELETE",
        "/v1/complaints/{number}/complainant",
        "Forget the name, the contact and the words of a complainant; the complaint goes on",
        Right.FORGET,
        rights.forget_complainant,
        problems=(rights.UNKNOWN_COMPLAINT,),
    ),
    Operation(
        "POST",
        "/v1/permissions",
        "Enter a permission: who may use whose text",
        Right.PERMIT,
        rights.enter_permission,
        problems=(rights.NOT_ENTERED, stories.UNKNOWN_STORY),
    ),
    Operation(
        "GET", "/v1/permissions", "List permissions, those entered last first", Right.CHECK, rights.permissions_of
    ),
    Operation(
        "GET",
        "/v1/permissions/{number}",
        "Show a permission",
        Right.CHECK,
        rights.permission_of,
        problems=(rights.UNKNOWN_PERMISSION,),
    ),
    Operation(
        "DELETE",
        "/v1/permissions/{number}",
        "Revoke a permission; it stays on record",
        Right.PERMIT,
        rights.revoke_permission,
        problems=(rights.UNKNOWN_PERMISSION, rights.NOT_ENTERED),
    ),
    Operation(
        "POST",
        "/v1/authors/{author}/token",
        "Make a token by which an author reads the copies of their own stories, until it expires",
        Right.AUTHORS,
        rights.make_author_token,
        problems=(rights.NO_AUTHOR_KEY,),
    ),
    Operation(
        "GET",
        "/v1/authors/{author}/copies",
        "List the stories by others that hold text of an author's stories, the latest flag first",
        Right.AUTHORS,
        rights.author_copies_of,
        problems=(EXPIRED_TOKEN, rights.OTHER_AUTHORS_TOKEN),
        admits_author=True,
    ),
    Operation(
        "GET",
        "/v1/authors/copies",
        "List the new copies since a time, by the author whose text they hold",
        Right.AUTHORS,
        rights.new_copies,
    ),
)


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


def describe_api() -> dict[str, Any]:
    """The OpenAPI document."""
    about = "Is this story a copy, of what, and where?  Asked before publication."
    return make_document(about, map(_describe, OPERATIONS), Problem)


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
