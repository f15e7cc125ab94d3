"""The commands: parsing, wiring and exit codes, nothing else.

This file is the group.  A command's module is imported only when that command is named, so that `--help` starts fast.
"""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from neardup import __version__
from neardup.process import LOADING, collect_seldom

if TYPE_CHECKING:
    from importlib.metadata import Distribution

# Before numpy is imported.  The matrices here are small: the threads of a product wait longer for each other than one
# alone takes, and keep every core from other programs meanwhile.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Name of a command: its module in this package, and its line in `neardup --help`, the first sentence of its help.
COMMANDS = {
    "init": ("start", "Write a configuration for your own pages, by a few questions or options"),
    "demo": ("start", "Find the copies among the bundled sample stories, in a folder of their own"),
    "run": ("run", "Run as a daemon until SIGTERM: daily runs on run.schedule, /metrics and /healthz"),
    "daily": ("run", "Run over the stories updated since the watermark"),
    "backfill": ("run", "Run over every story; an interrupted backfill resumes"),
    "sweep": ("run", "Flag the pairs among fingerprinted stories; an interrupted sweep resumes"),
    "check": ("ask", "Show what FILE (a page or plain text; - is stdin) would be flagged against"),
    "compare": ("ask", "Show the passages that A and B share"),
    "serve": ("run", "Serve the check before publication over HTTP, until SIGTERM"),
    "replay": ("measure", "Show what other thresholds would flag among the candidates on record"),
    "evaluate": ("measure", "Measure recall on copies made from your own stories, or on pairs that you labelled"),
    "audit": ("measure", "Measure what the index misses: compare some of the latest stories with all others"),
    "plan": ("measure", "Project what the corpus needs: memory, disk and time, and when the box will be full"),
    "scan": ("find", "Find the copies among texts: folders and files of .txt, .md and .html, and tables"),
    "show": ("ask", "Show the similarity of a story: its sources by share, and the copied passages"),
    "proof": ("ask", "Prove since when the texts of a story are known, as JSON that `verify-proof` verifies"),
    "verify-proof": ("ask", "Verify what `neardup proof` printed to FILE; needs no ledger and no network"),
    "case": ("decide", "Write the case file of a story, or the notice to its author"),
    "verdicts": ("decide", "Print every verdict and undo, in the order of time, as JSON lines"),
    "complaints": ("rights", "List the open complaints, the next deadline first, or record those of a CSV file"),
    "export": ("decide", "Write the flagged pairs, the most severe first, or the stories that copy"),
    "review": ("decide", "Serve the review desk, a web page where moderators decide the flagged cases"),
    "permit": ("rights", "Enter or revoke permissions: who may use whose text"),
    "suspects": ("decide", "List the marked stories, those marked last first, or count them by author"),
    "dead-letters": ("run", "List the stories and rows that could not be processed"),
    "retry": ("run", "Process the stories of dead letters again"),
    "status": ("maintain", "Show stories, flags, runs, dead letters and the index"),
    "doctor": ("maintain", "Test each part of the installation, from the configuration to the fingerprints"),
    "backup": ("maintain", "Write a checked copy of the ledger to PATH"),
    "reindex": ("maintain", "Rebuild the index from the ledger, and repair the passage index"),
    "reference": ("maintain", "Sync the works to protect, list their catalogues, or remove a catalogue"),
    "embed": ("run", "Make the vectors of works and new stories"),
    "import": ("maintain", "Add fingerprints that were made elsewhere, with their flags"),
    "spark": ("find", "Find the copies of a corpus on a Spark cluster, and write folders of Parquet"),
    "forget": ("maintain", "Remove a story from ledger, index, flags and dead letters"),
}

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")  # of a package, before its version
CLASSIFIER = "License :: "


class LazyGroup(click.Group):
    """A group of COMMANDS that imports the module of a command when the command is looked up."""

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        """Run the command.  A wrong command line ends in one line that says where the right one is described."""
        collect_seldom(LOADING)
        if not standalone_mode:
            return super().main(args, standalone_mode=False, **extra)
        try:
            sys.exit(super().main(args, standalone_mode=False, **extra))
        except click.ClickException as error:
            context = error.ctx if isinstance(error, click.UsageError) else None
            help_line = f"  See `{context.command_path} --help`." if context else ""
            click.echo(f"neardup: {' '.join(error.format_message().split())}{help_line}", err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("neardup: stopped", err=True)
            sys.exit(1)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"neardup.cli.{COMMANDS[cmd_name][0]}")
        commands = (value for value in vars(module).values() if isinstance(value, click.Command))
        return next(command for command in commands if command.name == cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing the others."""
        names = [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _print_licenses(context: click.Context) -> None:
    click.echo("\n".join(f"{name} {version}: {licence}" for name, version, licence in list_licences()))
    context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="neardup")
@click.option(
    "--licenses",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, given: _print_licenses(context) if given else None,
    help="Show the licences of neardup and of the installed packages that it needs, and exit.",
)
@click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, readable=False),  # load() explains a file that cannot be read
    metavar="PATH",
    envvar="NEARDUP_CONFIG",
    help="The configuration file.  [$NEARDUP_CONFIG, or else config.toml]",
)
@click.pass_context
def main(context: click.Context, config_path: Path | None) -> None:
    """Find copied stories among millions, in Indian languages and English."""
    context.obj = config_path


def list_licences() -> Iterator[tuple[str, str, str]]:
    """(name, version, licence) of neardup, then of each installed package that it needs, directly or not, by name.

    Its own extras count, those of other packages do not.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    installed: dict[str, Distribution] = {}
    missing = ["neardup"]
    while missing:
        name = missing.pop()
        try:
            found = distribution(name)
        except PackageNotFoundError:  # needed elsewhere, or by an extra that is not installed
            continue
        installed[_normalise(name)] = found
        required = [line for line in found.requires or () if name == "neardup" or "extra ==" not in line]
        missing += {needed for needed in map(_parse_name, required) if _normalise(needed) not in installed}
    own = installed.pop("neardup")
    for package in (own, *(installed[name] for name in sorted(installed))):
        yield package.metadata["Name"], package.version, _find_licence(package)


def _parse_name(requirement: str) -> str:
    name = NAME.match(requirement)
    assert name, requirement
    return name[0]


def _normalise(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _find_licence(package: "Distribution") -> str:
    """The SPDX expression of a package, or else what it says in words, its classifiers, or the title of its licence."""
    words = [line for line in _list_field(package, "License") if line.strip()]
    short = [text for text in words if "\n" not in text.strip()]  # some packages put the whole text there
    classifiers = [
        text.rpartition(" :: ")[2] for text in _list_field(package, "Classifier") if text.startswith(CLASSIFIER)
    ]
    stated = _list_field(package, "License-Expression") or short or classifiers or _list_titles(package)
    return ", ".join(stated) or "not stated"


def _list_titles(package: "Distribution") -> list[str]:
    """The first line of each licence that the package comes with."""
    texts = (package.read_text(f"licenses/{name}") or "" for name in _list_field(package, "License-File"))
    return [text.strip().partition("\n")[0].strip() for text in texts if text.strip()]


def _list_field(package: "Distribution", field: str) -> list[str]:
    return package.metadata.get_all(field) or []
