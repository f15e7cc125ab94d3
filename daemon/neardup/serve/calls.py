"""The calls of the API as a client makes them: what to send, what to make of the answer, and when to send again."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, NotRequired, TypedDict, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from neardup.errors import NeardupError
from neardup.serve import answers, requests
from neardup.serve.answers import Problem

A = TypeVar("A", bound=answers.Answer)
RETRIED = {429, 503}


class Story(TypedDict):
    """A story to check: its language, either `text` or `html`, and what is known of it."""

    language: str
    text: NotRequired[str]
    html: NotRequired[str]
    author_id: NotRequired[str]
    title: NotRequired[str]
    published_at: NotRequired[str]  # RFC 3339


class Side(TypedDict, total=False):
    """One side of a comparison: the id of a story on record, a text, or a page."""

    story_id: int | str
    text: str
    html: str


class ServiceError(NeardupError):
    """The service refused a request, or could not be reached.

    `problem` is its answer, None if there was none.  With `fail_open`, nothing is known about the story: publish it,
    and check it later.
    """

    def __init__(self, message: str, problem: Problem | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.problem = problem
        self.retry_after = retry_after

    @property
    def fail_open(self) -> bool:
        """Whether the failure is the service's."""
        return self.problem is None or self.problem.fail_open


@dataclass(frozen=True, slots=True)
class Call(Generic[A]):
    """One call: its method, its path, its body in JSON, and the model of its answer."""

    method: str
    path: str
    body: bytes | None
    answer: type[A]

    def result(self, status: int, body: bytes, retry_after: str | None) -> A:
        """The answer to the call.  Raises ServiceError for a problem."""
        try:
            if status == 200:
                return self.answer.model_validate_json(body)
            problem = Problem.model_validate_json(body)
        except ValidationError:
            raise ServiceError(f"{self.method} {self.path}: status {status}, and no answer of neardup") from None
        seconds = float(retry_after) if retry_after and retry_after.isdecimal() else None
        raise ServiceError(f"{self.method} {self.path}: {problem.title}: {problem.detail}", problem, seconds)


def is_worth_retrying(error: Exception) -> bool | float:
    """Whether to send a call again: True, or the seconds to wait first if the service asks for them."""
    if not isinstance(error, ServiceError) or (error.problem and error.problem.status not in RETRIED):
        return False
    return True if error.retry_after is None else error.retry_after


# One function makes each call of the clients.
def check(story_id: int | str | None, story: Story) -> Call[answers.CheckAnswer]:
    return _posted("/v1/check", requests.CheckRequest(id=story_id, **story), answers.CheckAnswer)


def check_batch(stories: Iterable[Story]) -> Call[answers.BatchAnswer]:
    batch = requests.BatchRequest(stories=[requests.CheckRequest(**story) for story in stories])
    return _posted("/v1/check:batch", batch, answers.BatchAnswer)


def compare(a: Side, b: Side) -> Call[answers.CompareAnswer]:
    request = requests.CompareRequest(a=requests.ComparedStory(**a), b=requests.ComparedStory(**b))
    return _posted("/v1/compare", request, answers.CompareAnswer)


def put(story_id: int | str, path: str | None, story: Story, *, restore: bool = False) -> Call[answers.CheckAnswer]:
    body = _body(requests.PutRequest(path=path, restore=restore, **story))
    return Call("PUT", _path_of(story_id), body, answers.CheckAnswer)


def story(story_id: int | str) -> Call[answers.Stored]:
    return Call("GET", _path_of(story_id), None, answers.Stored)


def matches(story_id: int | str) -> Call[answers.MatchesAnswer]:
    return Call("GET", f"{_path_of(story_id)}/matches", None, answers.MatchesAnswer)


def forget(story_id: int | str) -> Call[answers.Forgotten]:
    return Call("DELETE", _path_of(story_id), None, answers.Forgotten)


def _path_of(story_id: int | str) -> str:
    return f"/v1/stories/{quote(str(story_id), safe='')}"


def _posted(path: str, request: BaseModel, answer: type[A]) -> Call[A]:
    return Call("POST", path, _body(request), answer)


def _body(request: BaseModel) -> bytes:
    return request.model_dump_json(exclude_none=True).encode()
