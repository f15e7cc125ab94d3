"""`neardup spark`: finds the copies of a corpus on a Spark cluster."""

from functools import partial
from typing import TYPE_CHECKING

import click

from neardup.cli.base import command
from neardup.core.verify.keep import POLICIES
from neardup.errors import Misuse

if TYPE_CHECKING:
    from neardup.config import Config
    from neardup.core.verify.keep import Policy


@partial(command, needs_config=False)
@click.option("--output", required=True, metavar="FOLDER", help="Where the folders of Parquet are written.")
@click.option("--master", metavar="URL", help="The cluster, such as local[2] or yarn.  [that of spark-submit]")
@click.option("--input", "table", metavar="TABLE", help="Texts to compare instead of what is configured.")
@click.option("--text", metavar="COLUMN", help="The column of --input with texts or HTML pages.  [guessed]")
@click.option("--id", "row_id", metavar="COLUMN", help="The column of --input with ids.  [guessed]")
@click.option("--language", metavar="L", help="The language of all texts of --input.  [its column language]")
@click.option("--keep", type=click.Choice(POLICIES), default="earliest", help="What to keep of a cluster.  [earliest]")
def spark(
    config: "Config | None",
    *,
    output: str,
    master: str | None,
    table: str | None,
    text: str | None,
    row_id: str | None,
    language: str | None,
    keep: "Policy",
) -> None:
    """Find the copies of a corpus on a Spark cluster, and write folders of Parquet.

    The corpus is what the configuration lists, or --input: a path of Parquet, JSONL or CSV, or a table by its name.
    """
    from neardup.config import Config, Content, Source
    from neardup.extras import needs
    from neardup.source.documents import Columns

    with needs("spark", "neardup spark"):
        from neardup.spark.job import Input, Job
        from neardup.spark.session import session

    if config is None:
        if table is None:
            raise Misuse("name a configuration with --config, or texts with --input")
        config = Config(source=Source(kind="scan"), content=Content(url="file:/"))
    try:
        spoken = None if language is None else config.registry.find(language)
    except ValueError as error:
        raise Misuse(f"--language: {error}") from None
    given = None if table is None else Input(table, Columns(text, row_id), spoken)
    with session(master) as opened:
        Job(opened, config, output, given, partial(click.echo, err=True), keep=keep).run()
