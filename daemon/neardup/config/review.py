"""[review]: where the review desk is served."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from neardup.config.address import Address, HttpUrl
from neardup.config.section import FromText, Secret, Section

SHORTEST_TOKEN = 16  # characters


def _token(text: str) -> Secret:
    if text and (len(text) < SHORTEST_TOKEN or not text.isprintable()):
        raise ValueError(f"fewer than {SHORTEST_TOKEN} printable characters")
    return Secret(text)


class Review(Section, frozen=True, kw_only=True):
    """[review]: where the review desk is served, and the tokens that open it."""

    listen: Annotated[Address, Meta(description="`HOST:PORT` of the review desk.")] = "127.0.0.1:8765"
    token: Annotated[
        Secret,
        FromText(_token),
        Meta(
            description=f"Secret of at least {SHORTEST_TOKEN} printable characters that each browser must give once. "
            "The desk refuses to listen beyond this machine without one, or without `moderators`."
        ),
    ] = Secret("")
    moderators: Annotated[
        Path | None,
        Meta(
            description="File of the moderators' tokens, made by `neardup review --new-token NAME`. With it each "
            "moderator logs in with a token, which gives the name, and `token` is not used."
        ),
    ] = None
    webhook: Annotated[
        HttpUrl,
        Meta(description="URL that receives each verdict and undo as JSON by POST. Empty means none."),
    ] = ""
