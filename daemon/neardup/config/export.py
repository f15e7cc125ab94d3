"""[export]: the file and the message that follow a run."""

from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, model_validator

from neardup.config.section import Section, matching

Format = Literal["csv", "jsonl", "xlsx", "parquet", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS: dict[str, Format] = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl", ".htm": "html"}

Target = Path | str  # a local file, or the s3://BUCKET/KEY of an object


def target_of(value: object) -> Target | None:
    """Parse a path or an s3:// URL; None for an empty value.  Raises ValueError."""
    text = str(value or "")
    if not text.startswith("s3://"):
        return Path(text) if text else None
    parts = urlsplit(text)
    if not parts.netloc or not parts.path.strip("/") or text.endswith("/") or parts.query or parts.fragment:
        raise ValueError(f"not s3://BUCKET/KEY: {text!r}")
    return text


def format_of(target: Target) -> Format | None:
    """Return the format that the target's file name ending stands for, or None."""
    return ENDINGS.get(PurePosixPath(target).suffix.lower())


def unknown_ending(target: Target) -> str | None:
    """What is wrong with the ending of the target's file name, if it has one that names no format; else None."""
    ending = PurePosixPath(target).suffix
    if not ending or format_of(target):
        return None
    return f"the ending {ending} names no format: use {', '.join(f'.{name}' for name in FORMATS)}"


class Export(Section):
    """[export]: the file and the message that follow a run."""

    path: Annotated[Target | None, BeforeValidator(target_of)] = Field(
        default=None,
        description="File or `s3://BUCKET/KEY` that receives all open flags after each run. Unset means no file.",
    )
    format: Format | None = Field(
        default=None,
        description="Format of that file: `csv`, `jsonl`, `xlsx`, `parquet` or `html`. Unset means the format that "
        "the ending of `path` names, or else `csv`.",
    )
    webhook: Annotated[str, matching(r"(https?://[^/\s]\S*)?", "an http:// or https:// URL")] = Field(
        default="",
        description="URL that receives a JSON summary of each `daily`, `backfill` and `retry` run by POST. "
        "Empty means none.",
    )
    webhook_kinds: tuple[Literal["translated", "retold"], ...] = Field(
        default=(),
        description="The kinds `translated` and `retold` whose new pairs `neardup embed` posts to `webhook`, with how "
        "many it found of each. Empty means none.",
    )

    @model_validator(mode="after")
    def _ending_is_known(self) -> Self:
        if self.path and not self.format and (problem := unknown_ending(self.path)):
            raise ValueError(f"path: {problem}, or set export.format")
        return self

    @property
    def path_format(self) -> Format:
        """The format of the file at `path`: `format`, or the one that the ending of `path` names, or CSV."""
        return self.format or (format_of(self.path) if self.path else None) or "csv"
