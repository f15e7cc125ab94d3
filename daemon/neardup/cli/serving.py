"""The command about the HTTP service: `serve`."""

from typing import TYPE_CHECKING

import click

from neardup.cli.base import command
from neardup.cli.event_loop import run_async
from neardup.errors import Misuse
from neardup.option_values import DEFAULT_LISTEN
from neardup.serve.tokens import Right

if TYPE_CHECKING:
    from neardup.config import Config


@command
@click.option("--listen", metavar="HOST:PORT", help=f"Address to listen on.  [serve.listen, or {DEFAULT_LISTEN}]")
@click.option("--new-token", "token_name", metavar="NAME", help="Add a token to serve.tokens, print it, and exit.")
@click.option("--rights", metavar="LIST", help=f"Rights of the new token, from {','.join(Right)}.  [{Right.CHECK}]")
def serve(config: "Config", listen: str | None, token_name: str | None, rights: str | None) -> None:
    """Serve the check before publication over HTTP, until SIGTERM."""
    from neardup.config.address import address
    from neardup.serve.tokens import new_token, rights_of

    if token_name is not None:
        if config.serve.tokens is None:
            raise Misuse("--new-token: name the file of the tokens first, as serve.tokens")
        chosen = rights_of([right.strip() for right in (rights or Right.CHECK).split(",")])
        click.echo(new_token(config.serve.tokens, token_name, chosen))
        return
    if rights is not None:
        raise Misuse("--rights: only --new-token takes it")
    try:
        listen_address = address(listen) if listen else config.serve.listen or DEFAULT_LISTEN
    except ValueError as error:
        raise Misuse(f"--listen: {error}") from None
    from neardup.serve.app import serve as serve_until

    run_async(lambda stop: serve_until(config, listen_address, stop), finishes_queued_work=True)
