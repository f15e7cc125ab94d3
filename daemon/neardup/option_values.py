"""Values of the configuration and of options: the formats and places of exports, an address, the rights of a token."""

from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Literal, get_args
from urllib.parse import urlsplit

DEFAULT_LISTEN = "127.0.0.1:8766"  # of the check before publication


class Right(StrEnum):
    """What a token of the HTTP service permits."""

    CHECK = "check"  # check and compare texts, and read what is on record
    STORE = "store"
    FORGET = "forget"
    AUTHORS = "authors"  # make tokens for authors, and read what authors may read
    COMPLAIN = "complain"  # make complaints, read them, and answer to them
    PERMIT = "permit"  # enter and revoke permissions


Format = Literal["csv", "jsonl", "xlsx", "parquet", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS: dict[str, Format] = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl", ".htm": "html"}

Target = Path | str  # a local file, or the s3://BUCKET/KEY of an object


def read_target(text: str) -> Target | None:
    """Parse a path or an s3:// URL; None for an empty value.  Raises ValueError."""
    if not text.startswith("s3://"):
        return Path(text) if text else None
    parts = urlsplit(text)
    if not parts.netloc or not parts.path.strip("/") or text.endswith("/") or parts.query or parts.fragment:
        raise ValueError(f"not s3://BUCKET/KEY: {text!r}")
    return text


def format_of(target: Target) -> Format | None:
    """Return the format that the target's file name ending stands for, or None."""
    return ENDINGS.get(PurePosixPath(target).suffix.lower())


def explain_ending(target: Target) -> str | None:
    """What is wrong with the ending of the target's file name, if it has one that names no format; else None."""
    ending = PurePosixPath(target).suffix
    if not ending or format_of(target):
        return None
    return f"the ending {ending} names no format: use {', '.join(f'.{name}' for name in FORMATS)}"
