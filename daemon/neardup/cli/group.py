"""The command group.  A command's module is imported only when that command is named, so that `--help` starts fast."""

from importlib import import_module
from pathlib import Path

import click

from neardup import __version__

# Name of a command: its module in this package, and its line in `neardup --help`, the first sentence of its help.
COMMANDS = {
    "run": ("runs", "Run as a daemon until SIGTERM: daily runs on run.schedule, /metrics and /healthz"),
    "daily": ("runs", "Run over the stories updated since the watermark"),
    "backfill": ("runs", "Run over every story; an interrupted backfill resumes"),
    "sweep": ("runs", "Flag the pairs among fingerprinted stories; an interrupted sweep resumes"),
    "check": ("moderation", "Show what FILE (a page or plain text; - is stdin) would be flagged against"),
    "compare": ("moderation", "Show the passages that A and B share"),
    "serve": ("serving", "Serve the check before publication over HTTP, until SIGTERM"),
    "replay": ("insights", "Show what other thresholds would flag among the candidates on record"),
    "evaluate": ("insights", "Measure recall on copies made from your own stories, or on pairs that you labelled"),
    "plan": ("insights", "Project what the corpus needs: memory, disk and time, and when the box will be full"),
    "scan": ("scan", "Find the copies among files: folders, pages (.html) and plain texts (.txt, .md)"),
    "show": ("moderation", "Show the similarity of a story: its sources by share, and the copied passages"),
    "export": ("moderation", "Write the flagged pairs, the most severe first, or the stories that copy"),
    "report": ("insights", "Write an HTML page of plots for operators: flags, scores, buckets, latencies"),
    "review": ("moderation", "Serve the review desk, a web page where moderators decide the flagged pairs"),
    "dead-letters": ("dead_letters", "List the stories and rows that could not be processed"),
    "retry": ("dead_letters", "Process the stories of dead letters again"),
    "status": ("maintenance", "Show stories, flags, runs, dead letters and the index"),
    "doctor": ("maintenance", "Test config, ledger, index, source, object store, clock and fingerprints"),
    "backup": ("maintenance", "Write a checked copy of the ledger to PATH"),
    "reindex": ("maintenance", "Rebuild the index from the ledger, and repair the passage index"),
    "forget": ("maintenance", "Remove a story from ledger, index, flags and dead letters"),
}


class LazyGroup(click.Group):
    """A group of COMMANDS that imports the module of a command when the command is looked up."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"neardup.cli.{COMMANDS[cmd_name][0]}")
        commands = (value for value in vars(module).values() if isinstance(value, click.Command))
        return next(command for command in commands if command.name == cmd_name)

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
    help="The configuration file.  [config.toml]",
)
@click.pass_context
def main(context: click.Context, config_path: Path | None) -> None:
    """Find copied stories among millions, in Indian languages and English."""
    context.obj = config_path
