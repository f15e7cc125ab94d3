"""The command group, the configuration and the exit codes, which all commands share."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

import click
import structlog

from neardup import __version__
from neardup.cli import console
from neardup.config import load
from neardup.config.exposed_secrets import exposed
from neardup.errors import Misuse, NeardupError
from neardup.source.parse import parse_time

log = structlog.get_logger()

config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, readable=False),  # load() explains a file that cannot be read
    metavar="PATH",
    help="The configuration file.  [config.toml]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="neardup")
@config_option
@click.pass_context
def main(context: click.Context, config_path: Path | None) -> None:
    """Find copied stories among millions, in Indian languages and English."""
    context.obj = config_path
    console.set_up_logging()


def command(function: Callable[..., None]) -> click.Command:
    """Make a command whose function receives the configuration; `--config` may also follow its name."""

    @wraps(function)
    def with_config(config_path: Path | None, **options: Any) -> None:
        path = config_path or click.get_current_context().obj or Path("config.toml")
        try:
            config = load(path)
            for key in exposed(path):
                log.warning("others can read a secret: chmod o-r, or a variable", file=str(path), key=key)
            function(config, **options)
        except NeardupError as error:
            console.tell_why(error)
            raise SystemExit(error.exit_code) from None
        except asyncio.CancelledError:
            raise click.Abort from None
        except OSError as error:
            if isinstance(error, BrokenPipeError):  # click ends it quietly
                raise
            click.echo(f"neardup: {error.strerror or error}", err=True)
            with suppress(OSError):  # what could not be written would be tried again at exit
                sys.stdout.close()
            raise SystemExit(1) from None

    return main.command(name=function.__name__.rstrip("_").replace("_", "-"))(config_option(with_config))


def time_of(option: str, value: str | None) -> int | None:
    """An option's RFC 3339 time -> milliseconds; None where it was not given.  Raises Misuse."""
    try:
        return parse_time(value) if value else None
    except (ValueError, OverflowError):
        raise Misuse(f"{option}: {value!r} is not an RFC 3339 time") from None
