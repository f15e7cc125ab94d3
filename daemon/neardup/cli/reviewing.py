"""The command `review`, which serves the desk of the moderators."""

from typing import TYPE_CHECKING

import click

from neardup.cli.base import command
from neardup.cli.event_loop import run_async
from neardup.errors import Misuse

if TYPE_CHECKING:
    from neardup.config import Config


@command
@click.option("--listen", metavar="HOST:PORT", help="Address to listen on.  [review.listen]")
@click.option(
    "--new-token", "name", metavar="NAME", help="Add a moderator to review.moderators, print the token, exit."
)
@click.option("--rights", metavar="LIST", help="Rights of the new moderator, from read,decide.  [decide]")
@click.option("--languages", metavar="LIST", help="Languages that the new moderator decides, such as hi,ta.  [all]")
def review(config: "Config", listen: str | None, name: str | None, rights: str | None, languages: str | None) -> None:
    """Serve the review desk, a web page where moderators decide the flagged cases, until SIGTERM."""
    from neardup.app import open_readers
    from neardup.config.address import address
    from neardup.moderation.desk.app import serve

    if name is not None:
        click.echo(_new_moderator(config, name, rights, languages))
        return
    if rights is not None or languages is not None:
        raise Misuse("--rights, --languages: only --new-token takes them")
    try:
        listen_address = address(listen) if listen else config.review.listen
    except ValueError as error:
        raise Misuse(f"--listen: {error}") from None
    run_async(lambda stop: serve(config, lambda: open_readers(config), listen_address, stop), finishes_queued_work=True)


def _new_moderator(config: "Config", name: str, rights: str | None, languages: str | None) -> str:
    """Add a moderator to the file of the configuration; returns the token."""
    from neardup.moderation.desk import moderators

    if config.review.moderators is None:
        raise Misuse("--new-token: name the file of the moderators first, as review.moderators")
    chosen = moderators.rights_of(_listed(rights or moderators.Right.DECIDE))
    spoken = moderators.languages_of(_listed(languages or ""), config.registry)
    return moderators.new_token(config.review.moderators, moderators.Moderator(name, "", chosen, spoken))


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
