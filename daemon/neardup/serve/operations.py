"""The operations of the API as one table; the routes and the OpenAPI document are made from it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from neardup.app import ServiceParts
from neardup.problem_types import ProblemType
from neardup.serve import answers, requests
from neardup.serve.checks import check, check_batch, put
from neardup.serve.comparing import compare
from neardup.serve.lanes import Deadline
from neardup.serve.problems import FORGOTTEN, NO_STORY, UNKNOWN_STORY
from neardup.serve.recorded import forget, matches_of, story_of
from neardup.serve.story_ids import StoryId
from neardup.serve.tokens import Right


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: `work` does it, given the parts, the body and the id that it takes, and the deadline.

    `lane` is "by size" where the size of the body tells short from long.  `problems` are those that concern the story;
    every operation may end in the others.
    """

    method: str
    path: str
    summary: str
    right: Right
    request: type[BaseModel] | None
    answer: type[answers.Answer]
    work: Callable[..., Awaitable[answers.Answer]]
    lane: Literal["by size", "short", "long"] = "short"
    problems: tuple[ProblemType, ...] = ()

    @property
    def takes_id(self) -> bool:
        """Whether the path names a story."""
        return "{id}" in self.path

    def begin(
        self, parts: ServiceParts, story_id: StoryId | None, body: Any, deadline: Deadline
    ) -> Awaitable[answers.Answer]:
        """Begin the work."""
        taken = [one for one in (story_id, body) if one is not None]
        return self.work(parts, *taken, deadline)


OPERATIONS = (
    Operation(
        "POST",
        "/v1/check",
        "Check a story against those on record; nothing is stored",
        Right.CHECK,
        requests.CheckRequest,
        answers.CheckAnswer,
        check,
        "by size",
        (NO_STORY,),
    ),
    Operation(
        "POST",
        "/v1/check:batch",
        f"Check up to {requests.MOST_STORIES} stories, each by itself",
        Right.CHECK,
        requests.BatchRequest,
        answers.BatchAnswer,
        check_batch,
        "long",
    ),
    Operation(
        "POST",
        "/v1/compare",
        "Compare two stories",
        Right.CHECK,
        requests.CompareRequest,
        answers.CompareAnswer,
        compare,
        "long",
        (NO_STORY, UNKNOWN_STORY),
    ),
    Operation(
        "GET",
        "/v1/stories/{id}",
        "Show a story on record",
        Right.CHECK,
        None,
        answers.Stored,
        story_of,
        problems=(UNKNOWN_STORY,),
    ),
    Operation(
        "GET",
        "/v1/stories/{id}/matches",
        "Show the flagged pairs of a story on record",
        Right.CHECK,
        None,
        answers.MatchesAnswer,
        matches_of,
        problems=(UNKNOWN_STORY,),
    ),
    Operation(
        "PUT",
        "/v1/stories/{id}",
        "Check a story and store it; the same request again changes nothing",
        Right.STORE,
        requests.PutRequest,
        answers.CheckAnswer,
        put,
        "by size",
        (NO_STORY, FORGOTTEN),
    ),
    Operation(
        "DELETE",
        "/v1/stories/{id}",
        "Forget a story; a later listing does not bring it back",
        Right.FORGET,
        None,
        answers.Forgotten,
        forget,
    ),
)
