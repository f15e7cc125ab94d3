"""What all commands share: the configuration, the exit codes, the values of common options, and the event loop."""

import json
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from neardup.cli import console
from neardup.errors import Misuse, NeardupError, Transient
from neardup.process import collect_seldom, use_one_arena
from neardup.telemetry.log import log

if TYPE_CHECKING:
    import asyncio

    from neardup.core.languages import Languages
    from neardup.pipeline.summary import Summary
    from neardup.records import Language

T = TypeVar("T")
INTERRUPTED = "neardup.interrupted"  # key of the context's meta: whether Ctrl-C was pressed

config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, readable=False),  # load() explains a file that cannot be read
    metavar="PATH",
    help="The configuration file.  [$NEARDUP_CONFIG, or else config.toml]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def make_command(
    function: Callable[..., None], *, needs_config: bool = True, reads_pages: bool = False
) -> click.Command:
    """Make a command whose function receives the configuration; `--config` may also follow the command's name.

    Unless it `needs_config`, the configuration is None if none was named and there is no config.toml.  If it
    `reads_pages`, the fork server of its reader processes loads while the command itself loads.
    """

    @wraps(function)
    def with_config(config_path: Path | None, **options: Any) -> None:
        named = config_path or click.get_current_context().obj
        path = named or Path("config.toml")
        is_absent = named is None and not path.exists()
        if is_absent and needs_config:
            raise Misuse("no config.toml here: `neardup init` writes one; --config or NEARDUP_CONFIG names another")
        if reads_pages:
            from neardup.pages.fork_server import start_server

            start_server()
        from neardup.config import load
        from neardup.config.loading import list_exposed_secrets

        config = None if is_absent else load(path)
        for key in () if is_absent else list_exposed_secrets(path):
            log.warning(
                "every user can read a secret in this file: chmod o-r, or use an environment variable",
                file=str(path),
                key=key,
            )
        function(config, **options)

    return make_standalone_command(config_option(with_config))


def make_standalone_command(function: Callable[..., None]) -> click.Command:
    """Make a command that has no configuration.  Its errors become one line and an exit code.

    The name is that of the function, without the underscore that keeps a function from hiding a module.
    """

    @wraps(function)
    def with_errors_reported(**options: Any) -> None:
        console.set_up_logging()
        console.escape_unprintable()
        try:
            function(**options)
        except NeardupError as error:
            console.print_error(error)
            raise SystemExit(error.exit_code) from None
        except OSError as error:
            if isinstance(error, BrokenPipeError):  # click exits without a message
                raise
            click.echo(f"neardup: {error.strerror or error}", err=True)
            with suppress(OSError):  # Python would try to write the rest again at exit
                sys.stdout.close()
            raise SystemExit(1) from None

    return click.command(name=function.__name__.rstrip("_").replace("_", "-"))(with_errors_reported)


def refuse_missing_folder(option: str, path: Path) -> None:
    """Raise Misuse, before any work is done, if the folder of a file to write does not exist."""
    if not path.parent.is_dir():
        raise Misuse(f"{option}: there is no folder {path.parent}")


def parse_time_option(option: str, value: str | None) -> int | None:
    """Parse an option's RFC 3339 time into milliseconds; None if the option was not given.  Raises Misuse."""
    try:
        from neardup.source.parse import parse_time

        return parse_time(value) if value else None
    except (ValueError, OverflowError):
        raise Misuse(f"{option}: {value!r} is not an RFC 3339 time") from None


def parse_story_id(value: str) -> int:
    """The integer of a story's id as it is listed, an integer or a name: the type of an option or argument."""
    from neardup.source.parse import parse_id

    try:
        return parse_id(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def find_language(languages: "Languages", name: str, option: str = "--language") -> "Language":
    """The language that an option names.  Raises Misuse."""
    try:
        return languages.find(name)
    except ValueError as error:
        raise Misuse(f"{option}: {error}") from None


def split_words(value: str) -> list[str]:
    """The words of an option that are separated by commas."""
    return [word.strip() for word in value.split(",") if word.strip()]


def print_json(facts: object) -> None:
    """Print what a command found as JSON on one line."""
    from msgspec import to_builtins

    click.echo(json.dumps(to_builtins(facts), ensure_ascii=False))


def print_answer(facts: object, answer: "str | Callable[[], None]", *, as_json: bool) -> None:
    """Print the facts as JSON, or else the sentence that says them, or what a function prints of them."""
    if as_json:
        print_json(facts)
    elif isinstance(answer, str):
        click.echo(answer)
    else:
        answer()


def print_summary(summary: "Summary", show: "Callable[[], None]", *, as_json: bool, **more: object) -> None:
    """Print what a job did, as JSON with `more`, or by a function.  Ends a command that Ctrl-C stopped."""
    print_answer({"status": summary.status, **summary.as_dict(), **more}, show, as_json=as_json)
    if summary.status == "stopped":
        exit_if_interrupted()


def exit_if_interrupted() -> None:
    """End a command whose work Ctrl-C stopped: what follows in a shell must not take it for done."""
    if click.get_current_context().meta.get(INTERRUPTED):
        raise SystemExit(Transient.exit_code)


def run_async(work: "Callable[[asyncio.Event], Coroutine[Any, Any, T]]", *, finishes_queued_work: bool = False) -> T:
    """Run `work(stop)`.  SIGTERM and SIGINT cancel it; if it `finishes_queued_work`, they only set `stop`.

    Raises click.Abort if it was cancelled.
    """
    import asyncio
    import signal

    context = click.get_current_context(silent=True)

    import uvloop

    async def with_signals() -> T:
        stop = asyncio.Event()
        task = asyncio.ensure_future(work(stop))
        on_signal = stop.set if finishes_queued_work else task.cancel

        def on_interrupt() -> None:
            if context is not None:
                context.meta[INTERRUPTED] = True
            on_signal()

        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, on_signal)
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, on_interrupt)
        return await task

    collect_seldom()
    use_one_arena()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        try:
            return runner.run(with_signals())
        except asyncio.CancelledError:
            raise click.Abort from None
