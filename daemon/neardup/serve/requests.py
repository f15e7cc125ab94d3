"""The requests of the HTTP API: the OpenAPI document, the service and the clients share these models."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, PlainValidator, WithJsonSchema, model_validator

from neardup.serve.story_ids import ShownId, story_id_of
from neardup.source.parse import LONGEST_NAME, MAX_ID, parse_time

MOST_STORIES = 100  # in one batch


def _time(value: str) -> str:
    try:
        parse_time(value)
    except (ValueError, OverflowError):
        raise ValueError("not an RFC 3339 time") from None
    return value


def _id(value: object) -> ShownId:
    if (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID) or isinstance(value, str):
        story_id_of(value)
        return value
    raise ValueError(f"neither an integer from 0 to {MAX_ID} nor a text")


ID_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": MAX_ID},
        {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
    ]
}
ListedId = Annotated[ShownId, PlainValidator(_id), WithJsonSchema(ID_SCHEMA)]
Time = Annotated[str, AfterValidator(_time), Field(json_schema_extra={"format": "date-time"})]


class Request(BaseModel):
    """What a client sends: nothing is converted, and an unknown member is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _one_of(*names: str) -> dict[str, Any]:
    """A JSON schema: exactly one of these members is given."""
    return {"oneOf": [{"required": [name], "properties": {name: {"not": {"type": "null"}}}} for name in names]}


def _require_one(model: BaseModel, *names: str) -> None:
    given = [name for name in names if getattr(model, name) is not None]
    if len(given) != 1:
        raise ValueError(f"give either {' or '.join(names)}")


class StoryRequest(Request):
    """A story: its text, or its page as HTML, and what is known of it."""

    model_config = ConfigDict(json_schema_extra=_one_of("text", "html"))

    language: str = Field(description="A name or an ISO 639-1 code, such as `HINDI` or `hi`.")
    text: str | None = Field(default=None, description="The story as plain text.")
    html: str | None = Field(default=None, description="The story's page; `extract.body` selects the story in it.")
    author_id: str | None = Field(default=None, description="Matches with stories of the same author may not count.")
    title: str | None = None
    published_at: Time | None = Field(default=None, description="RFC 3339; UTC if it names no zone.")

    @model_validator(mode="after")
    def _has_one_text(self) -> Self:
        _require_one(self, "text", "html")
        return self


class CheckRequest(StoryRequest):
    """A story to check; nothing of it is stored."""

    id: ListedId | None = Field(default=None, description="The story's id, if it has one: it is no match of itself.")


class PutRequest(StoryRequest):
    """A story to check and to store."""

    path: str | None = Field(default=None, description="The story's page below `content.url`, where it has one.")
    restore: bool = Field(default=False, description="Store it even if it was forgotten on request.")


class BatchRequest(Request):
    """Stories to check, each by itself."""

    stories: list[CheckRequest] = Field(min_length=1, max_length=MOST_STORIES)


class ComparedStory(Request):
    """One side of a comparison: a stored story, a text or a page."""

    model_config = ConfigDict(json_schema_extra=_one_of("story_id", "text", "html"))

    story_id: ListedId | None = None
    text: str | None = None
    html: str | None = None

    @model_validator(mode="after")
    def _is_one_story(self) -> Self:
        _require_one(self, "story_id", "text", "html")
        return self


class CompareRequest(Request):
    """Two stories to compare."""

    a: ComparedStory
    b: ComparedStory
