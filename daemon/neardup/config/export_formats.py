"""The formats of an export, and where one goes: a file, or an object of S3."""

from pathlib import Path, PurePosixPath
from typing import Literal, get_args
from urllib.parse import urlsplit

Format = Literal["csv", "jsonl", "xlsx", "parquet", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
ENDINGS: dict[str, Format] = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl", ".htm": "html"}

Target = Path | str  # a local file, or the s3://BUCKET/KEY of an object


def target_of(value: object) -> Target | None:
    """A path or an s3:// URL, as it was written; None for nothing.  Raises ValueError."""
    text = str(value or "")
    if not text.startswith("s3://"):
        return Path(text) if text else None
    parts = urlsplit(text)
    if not parts.netloc or not parts.path.strip("/") or text.endswith("/") or parts.query or parts.fragment:
        raise ValueError(f"not s3://BUCKET/KEY: {text!r}")
    return text


def format_of(target: Target) -> Format | None:
    """The format that the target's ending names."""
    return ENDINGS.get(PurePosixPath(target).suffix.lower())
