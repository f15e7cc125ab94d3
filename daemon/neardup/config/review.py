"""[review]: where the review desk is served."""

from pathlib import Path
from typing import Annotated

from neardup.config.address import Address
from neardup.config.section import Before, Secret, Section, matching, setting

SHORTEST_TOKEN = 16  # characters


def _token(value: object) -> object:
    text = value.revealed() if isinstance(value, Secret) else str(value)
    if text and (len(text) < SHORTEST_TOKEN or not text.isprintable()):
        raise ValueError(f"fewer than {SHORTEST_TOKEN} printable characters")
    return value


class Review(Section):
    """[review]: where the review desk is served, and the tokens that open it."""

    listen: Address = setting(default="127.0.0.1:8765", description="`HOST:PORT` of the review desk.")
    token: Annotated[Secret, Before(_token)] = setting(
        default=Secret(""),
        description=f"Secret of at least {SHORTEST_TOKEN} printable characters that each browser must give once. "
        "The desk refuses to listen beyond this machine without one, or without `moderators`.",
    )
    moderators: Path | None = setting(
        default=None,
        description="File of the moderators' tokens, made by `neardup review --new-token NAME`. With it each moderator "
        "logs in with a token, which gives the name, and `token` is not used.",
    )
    webhook: Annotated[str, matching(r"(https?://[^/\s]\S*)?", "an http:// or https:// URL")] = setting(
        default="",
        description="URL that receives each verdict and undo as JSON by POST. Empty means none.",
    )
