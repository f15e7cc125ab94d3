"""The command group.  A command's module is imported only when that command is named, so that `--help` starts fast."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from neardup import __version__
from neardup.garbage_collection import LOADING, collect_seldom

# Name of a command: its module, and its line in `neardup --help`, the first sentence of its help.
COMMANDS = {
    "init": ("neardup.cli.setup", "Write a configuration for your own pages, by a few questions or options"),
    "demo": ("neardup.cli.setup", "Find the copies among the bundled sample stories, in a folder of their own"),
    "run": ("neardup.cli.daemon", "Run as a daemon until SIGTERM: daily runs on run.schedule, /metrics and /healthz"),
    "daily": ("neardup.cli.runs", "Run over the stories updated since the watermark"),
    "backfill": ("neardup.cli.runs", "Run over every story; an interrupted backfill resumes"),
    "sweep": ("neardup.cli.runs", "Flag the pairs among fingerprinted stories; an interrupted sweep resumes"),
    "check": ("neardup.cli.checking", "Show what FILE (a page or plain text; - is stdin) would be flagged against"),
    "compare": ("neardup.cli.checking", "Show the passages that A and B share"),
    "serve": ("neardup.cli.serving", "Serve the check before publication over HTTP, until SIGTERM"),
    "replay": ("neardup.cli.insights", "Show what other thresholds would flag among the candidates on record"),
    "evaluate": (
        "neardup.cli.insights",
        "Measure recall on copies made from your own stories, or on pairs that you labelled",
    ),
    "audit": (
        "neardup.cli.auditing",
        "Measure what the index misses: compare some of the latest stories with all others",
    ),
    "plan": (
        "neardup.cli.insights",
        "Project what the corpus needs: memory, disk and time, and when the box will be full",
    ),
    "scan": ("neardup.cli.scan", "Find the copies among texts: folders and files of .txt, .md and .html, and tables"),
    "show": ("neardup.cli.checking", "Show the similarity of a story: its sources by share, and the copied passages"),
    "case": ("neardup.cli.cases", "Write the case file of a story, or the notice to its author"),
    "verdicts": ("neardup.cli.cases", "Print every verdict and undo, in the order of time, as JSON lines"),
    "export": ("neardup.cli.moderation", "Write the flagged pairs, the most severe first, or the stories that copy"),
    "report": ("neardup.cli.insights", "Write an HTML page of plots for operators: flags, scores, buckets, latencies"),
    "review": ("neardup.cli.reviewing", "Serve the review desk, a web page where moderators decide the flagged cases"),
    "suspects": ("neardup.cli.suspects", "List the marked stories, those marked last first, or count them by author"),
    "dead-letters": ("neardup.cli.dead_letters", "List the stories and rows that could not be processed"),
    "retry": ("neardup.cli.dead_letters", "Process the stories of dead letters again"),
    "status": ("neardup.cli.status", "Show stories, flags, runs, dead letters and the index"),
    "doctor": ("neardup.cli.maintenance", "Test config, ledger, index, source, object store, clock and fingerprints"),
    "backup": ("neardup.cli.maintenance", "Write a checked copy of the ledger to PATH"),
    "reindex": ("neardup.cli.maintenance", "Rebuild the index from the ledger, and repair the passage index"),
    "reference": ("neardup.cli.reference", "List the works to protect, show their catalogues, or remove one"),
    "embed": ("neardup.cli.embedding", "Make the vectors of works and new stories"),
    "import": ("neardup.cli.importing", "Add fingerprints that were made elsewhere, with their flags"),
    "spark": ("neardup.cli.spark", "Find the copies of a corpus on a Spark cluster, and write folders of Parquet"),
    "forget": ("neardup.cli.maintenance", "Remove a story from ledger, index, flags and dead letters"),
}


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
        module = import_module(COMMANDS[cmd_name][0])
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
    licences = import_module("neardup.cli.licenses").licences()
    click.echo("\n".join(f"{name} {version}: {licence}" for name, version, licence in licences))
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
