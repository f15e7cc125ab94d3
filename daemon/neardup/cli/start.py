"""The commands that begin something new: `init`, `demo`."""

import json
import os
import re
import shlex
import shutil
import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import aclosing
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.command import find_language, make_standalone_command, refuse_missing_folder, run_async
from neardup.errors import Fatal, Misuse, NeardupError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neardup.config import Config
    from neardup.core.page import Page
    from neardup.core.text.extraction import Extraction
    from neardup.records import Rendering


CONFIG = "config.toml"
SECTION = re.compile(r"\[([\w.]+)\]")
KEY = re.compile(r"(?:# )?(\w+) = ")
COMMENT_COLUMN = 41

Value = str | tuple[str, ...] | None  # None: the key is not set
ATHENA = "athena"
FOLDER = "folder"
WHOLE_PAGE = "-"
MOST_REASONS = 3
# In place of what the configuration of the samples has.
OWN_VALUES: dict[str, Value] = {
    "ledger.path": "var/neardup.db",
    "export.path": "var/flags.html",
    "extract.strip": (),
}  # where those of the samples do not fit
ATHENA_VALUES: dict[str, Value] = {
    "source.kind": ATHENA,
    "source.manifest": None,
    "source.database": "DATABASE",
    "source.output": "s3://RESULTS-BUCKET/neardup/",
    "source.backfill_sql": "SELECT * FROM stories",
    "source.daily_sql": "SELECT * FROM stories WHERE updated_at >= from_iso8601_timestamp(?)",
}


@make_standalone_command
@click.option("--pages", metavar="PLACE", help="Where the pages are: a folder, or s3://BUCKET/PREFIX.")
@click.option(
    "--list",
    "listing",
    metavar="FILE",
    help="What lists the stories: a CSV, JSON, JSONL or Parquet file, or athena.  [every page in the folder]",
)
@click.option(
    "--language", metavar="L", help="Language of all pages in a folder, such as HINDI or hi.  [that of each page]"
)
@click.option("--body", metavar="CSS", help="Selector of the story on a page; - is the whole page.  [proposed]")
@click.option("--index", metavar="URL", help="Where the index is kept: sqlite: or the redis:// URL of a server.")
@click.option(
    "-o", "--output", default="config.toml", show_default=True, type=click.Path(path_type=Path), metavar="PATH"
)
def init(*, output: Path, **given: str | None) -> None:
    """Write a configuration for your own pages, by a few questions or options.

    The selector of the story is proposed from the pages themselves.  The configuration is tested as `neardup doctor`
    does.  What no option answers is asked on a terminal; elsewhere the default counts, if there is one.
    """
    from neardup.cli.maintain import print_checks
    from neardup.ops.doctor import Level

    refuse_missing_folder("--output", output)
    if output.exists():
        raise Misuse(f"{output} exists already: name another file with --output, or move it away")
    config = _configure(given, output)
    named = "" if output == Path("config.toml") else f" --config {shlex.quote(str(output))}"
    program = f"{console.name_program()}{named}"
    if config.source.kind == ATHENA:
        click.echo(f"{output} is written.  Fill in its section [source] and extract.body, then: {program} doctor")
        return
    if Level.FAIL in print_checks(config):
        raise Fatal(f"{output} is written, but a test failed: mend it, then run `{program} doctor`")
    click.echo(
        f"\n{output} is written; every key has a comment.  Next:\n"
        f"    {program} backfill   # find the copies; they are then in {config.export.path}\n"
        f"    {program} review     # decide them in a browser"
    )


def _configure(given: Mapping[str, str | None], output: Path) -> "Config":
    """Ask what no option answers, and write the configuration."""
    url = _make_url(_answer("--pages", given["pages"], "Where are the pages? A folder, or s3://BUCKET/PREFIX"), output)
    listing = _answer(
        "--list",
        given["listing"],
        "What lists the stories? A file, or athena; nothing means every page in the folder",
        None if url.startswith("s3:") else "",
    )
    values: dict[str, Value] = OWN_VALUES | {"content.url": url}
    if listing and given["language"] is not None:
        raise Misuse("--language: the list names the language of each story; leave the option out")
    if listing == ATHENA:
        values |= ATHENA_VALUES
    elif listing:
        values["source.manifest"] = _find_manifest(listing, output)
    else:
        values |= _make_folder_values(given["language"])
    values["index.url"] = _answer(
        "--index", given["index"], "Where is the index kept? sqlite:, or redis://HOST:PORT", "sqlite:"
    )
    try:
        config = _write(values, output)
        if listing == ATHENA:
            return config
        if not listing:
            run_async(lambda _: _show_listing(config))
        extraction = _choose_extraction(config, given["body"])
        return _write(values | {"extract.body": extraction.body, "extract.strip": tuple(extraction.strip)}, output)
    except (NeardupError, click.Abort):
        output.unlink(missing_ok=True)
        raise


def _answer(option: str, given: str | None, question: str, default: str | None = None) -> str:
    """The value of an option, or the answer to the question; without a terminal the default, or Misuse for none."""
    if given is not None:
        return given
    if sys.stdin.isatty():
        return str(click.prompt(question, default=default, show_default=bool(default), err=True))
    if default is None:
        raise Misuse(f"give {option}: {question}")
    return default


def _make_url(pages: str, output: Path) -> str:
    """The value of content.url for the answer to the question about the pages."""
    if pages.startswith("s3://"):
        return pages
    if not Path(pages).is_dir():
        if Path(pages).exists():
            raise Misuse(f"--pages: {pages} is a file: name the folder that holds the pages")
        raise Misuse(f"--pages: there is no folder {pages}")
    return f"file:{_relate_path(output, Path(pages))}"


def _relate_path(output: Path, path: Path) -> str:
    """A path as the configuration file names it, relative to its own folder; absolute paths stay."""
    return str(path) if path.is_absolute() else os.path.relpath(path, output.parent)


def _find_manifest(listing: str, output: Path) -> str:
    if not Path(listing).is_file():
        raise Misuse(f"--list: there is no file {listing}")
    return _relate_path(output, Path(listing))


def _make_folder_values(language: str | None) -> dict[str, Value]:
    """The keys of [source] for each page in the folder."""
    from neardup.core.languages import SHIPPED

    spoken = "" if language is None else find_language(SHIPPED, language)
    return {"source.kind": FOLDER, "source.language": spoken, "source.manifest": None}


async def _show_listing(config: "Config") -> None:
    """Print how many pages the folder has, and what their languages seem to be.  Raises Misuse if it has none."""
    from neardup.core.text.scripts import describe_languages
    from neardup.records import format_count
    from neardup.source import list_rows
    from neardup.source.listings import open_folder

    folder = open_folder(config)
    try:
        pages = len(await folder.find())
    except Fatal as error:
        raise Misuse(f"--pages: {error}") from None
    async with aclosing(list_rows(folder)) as rows:  # type: ignore[type-var]
        async for _ in rows:  # listing guesses the languages
            pass
    found = format_count(pages, "page", "pages")
    click.echo(f"{found}; those that are added to the folder later are found by `neardup daily`")
    if folder.guessed:
        click.echo(describe_languages(folder.guessed, folder.unsure))


def _choose_extraction(config: "Config", given: str | None) -> "Extraction":
    """Where the story is on the pages, by default as the pages themselves propose, and the boxes to remove from it."""
    from neardup.core.text.extraction import Extraction
    from neardup.ops.selectors import propose_body, propose_strip, sample_pages

    with console.show_waiting("init"):
        pages = run_async(lambda _: sample_pages(config))
    question = "Which part of a page is the story? A CSS selector; - is the whole page"
    answer = _answer("--body", given, question, propose_body([sample.page for sample in pages]) or WHOLE_PAGE)
    body = "" if answer == WHOLE_PAGE else answer
    try:
        Extraction(body)
    except ValueError as error:
        raise Misuse(f"--body: {error}") from None
    extraction = Extraction(body, propose_strip(pages, body))
    _show_story([sample.page for sample in pages], extraction)
    return extraction


def _show_story(pages: "list[Page]", extraction: "Extraction") -> None:
    """Print how many pages have a story by these selectors, how one begins, what is removed, and how many are rendered.

    Those are slow, since their styles decide what is visible.
    """
    from neardup.core.page import PageStory, extract_story
    from neardup.core.text.html import cut_opening

    stories = [extract_story(page, extraction) for page in pages]
    texts = [story.text.written for story in stories if isinstance(story, PageStory) and story.text.given.strip()]
    begins = f", one begins: {cut_opening(texts[0])}" if texts else ""
    click.echo(f"{extraction.body or 'the whole page'}: a story on {len(texts)} of {len(pages)} pages{begins}")
    if extraction.strip:
        click.echo(f"removed from each story, because it is the same on page after page: {', '.join(extraction.strip)}")
    _show_renderings([story.rendered for story in stories])


def _show_renderings(renderings: "Sequence[Rendering | None]") -> None:
    """Print how many pages are rendered, by what, the commonest reasons, and what to do; there is one item a page."""
    from neardup.records import format_count

    pages, shares = len(renderings), []
    for by, what in (
        ("native", "the library in C, in a fraction of a millisecond"),
        ("python", "Python, in milliseconds"),
    ):
        reasons = Counter(rendering.reason for rendering in renderings if rendering and rendering.by == by)
        if count := reasons.total():
            commonest = ", ".join(f"{reason} ({times})" for reason, times in reasons.most_common(MOST_REASONS))
            among = f"of {pages} pages ({count / pages:.0%})"
            shares.append(
                f"{format_count(count, f'{among} is', f'{among} are')} rendered by {what}, because of: {commonest}"
            )
    if not shares:
        click.echo(f"none of {pages} pages is rendered: only the story is looked at")
        return
    click.echo("\n".join(shares))
    click.echo("if there are many, give extract.body a selector that matches the story's element alone")


def _write(values: dict[str, Value], output: Path) -> "Config":
    from neardup.config import load

    try:
        output.write_bytes(make_config_text(values).encode())
    except UnicodeEncodeError as error:
        raise Misuse(f"cannot write {output}: it would hold a path or a text that is not UTF-8") from error
    except OSError as error:
        raise Fatal(f"cannot write {output}: {error.strerror}") from error
    return load(output)


# The files: a configuration is that of the samples, whose every key has a comment, with other values


def make_config_text(values: Mapping[str, Value]) -> str:
    """The commented configuration with these values of `section.key`.

    A key without a value here keeps its line.  Raises ValueError for a key that the configuration lacks.
    """
    remaining, section, lines = dict(values), "", list[str]()
    for line in (files("neardup") / "samples" / "config.toml").read_text(encoding="utf-8").splitlines():
        if heading := SECTION.fullmatch(line):
            section = heading[1]
        key = KEY.match(line)
        name = f"{section}.{key[1]}" if key else ""
        lines.append(_replace_value(name, remaining.pop(name), line) if name in remaining else line)
    if remaining:
        raise ValueError(f"the configuration has no {', '.join(remaining)}")
    return "\n".join([*lines, ""])


def _replace_value(name: str, value: Value, line: str) -> str:
    """The line of a key with another value, and with the comment that it had."""
    if value is None:
        return line if line.startswith("# ") else f"# {line}"
    toml = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML forbids it, JSON does not
    _, mark, comment = line.removeprefix("# ").partition(" # ")
    start = f"{name.partition('.')[2]} = {toml}"
    return f"{start:<{COMMENT_COLUMN - 1}} # {comment}" if mark else start


def copy_samples(folder: Path) -> Path:
    """Copy the samples into a folder, which is made if need be; returns the path of their configuration.

    Raises Misuse for a folder that holds anything else, Fatal if the folder cannot be written.
    """
    try:
        with as_file(files("neardup") / "samples") as samples:
            is_demo = (folder / CONFIG).exists() and (folder / CONFIG).read_bytes() == (samples / CONFIG).read_bytes()
            if folder.exists() and not is_demo and any(folder.iterdir()):
                raise Misuse(f"{folder} holds files of your own: name a new folder, `neardup demo FOLDER`")
            shutil.copytree(samples, folder, ignore=shutil.ignore_patterns("meaning"), dirs_exist_ok=True)
    except OSError as error:
        raise Fatal(f"cannot write the samples to {folder}: {error.strerror or error}") from error
    return folder / CONFIG


@make_standalone_command
@click.argument("folder", default="neardup-demo", type=click.Path(file_okay=False, path_type=Path))
def demo(folder: Path) -> None:
    """Find the copies among the bundled sample stories, in a folder of their own.

    FOLDER [neardup-demo] receives the stories, their configuration, the ledger and the flags.
    Variables NEARDUP_<SECTION>__<KEY> do not count here.
    """
    from neardup.cli.run import run_and_print
    from neardup.config import load
    from neardup.config.loading import VARIABLE_PREFIX

    config_path = copy_samples(folder)
    for name in [name for name in os.environ if name.upper().startswith(VARIABLE_PREFIX)]:
        del os.environ[name]  # settings of the user's own data
    run_and_print(load(config_path), "backfill", as_json=False)
    program = console.name_program()
    click.echo(
        f"\nEverything is in {folder}; delete it when you are done.  To look further:\n"
        f"    export NEARDUP_CONFIG={shlex.quote(str(config_path))}\n"
        f"    {program} show 4104005\n"
        f"    {program} review"
    )
