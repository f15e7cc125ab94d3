"""The commands that answer a question about one text or story: `check`, `compare`, `show`, `proof`, `verify-proof`."""

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.command import (
    find_language,
    json_option,
    make_command,
    parse_story_id,
    print_answer,
    refuse_missing_folder,
    run_async,
)
from neardup.errors import Fatal, Misuse

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.query.check import CheckResult, Match
    from neardup.records import Language


@partial(make_command, reads_pages=True)
@click.argument("file", type=click.File("rb"))
@click.option("--language", required=True, metavar="L", help="A name or an ISO code, such as HINDI or hi.")
@json_option
def check(config: "Config", file: IO[bytes], language: str, as_json: bool) -> None:
    """Show what FILE (a page or plain text; - is stdin) would be flagged against; stores nothing.

    If FILE is the page of a story that is in the ledger, this story is left out.
    """
    from neardup.app import make_extraction, open_checker
    from neardup.cli import output
    from neardup.core.page import Unreadable, read_file
    from neardup.ledger import read
    from neardup.pages.results import explain
    from neardup.query.check import Submission
    from neardup.source.parse import parse_id, parse_name

    text_language = find_language(config.registry, language)
    read(config.ledger.path).close()  # fails early where there is no ledger
    text = read_file(file.read(), make_extraction(config))
    if isinstance(text, Unreadable):
        raise Fatal(f"{file.name}: {explain(text)}")

    async def check_page(_: "asyncio.Event") -> "CheckResult":
        async with open_checker(config) as checker:
            result = await checker.check(Submission(text_language, text))
            held = next((match for match in result.matches if _is_page_of(match, text_language, file, config)), None)
            if held is None:
                return result
            shown = str(held.story_id)
            own = (parse_id(shown), parse_name(shown), held.author_id, held.title, held.published_at)
            return await checker.check(Submission(text_language, text, *own))

    with console.show_waiting("check"):
        result = run_async(check_page)
    if result.left_out is not None and not as_json:
        click.echo(f"{file.name} is the page of the story {result.left_out}, which is in the ledger: it is left out")
    print_answer(result.as_dict(), partial(output.show_check, result), as_json=as_json)


def _is_page_of(match: "Match", language: "Language", file: IO[bytes], config: "Config") -> bool:
    """Whether a file is the page of a story that matches it."""
    from neardup.pages.store import find_location
    from neardup.records import Story
    from neardup.source.parse import parse_id

    page = find_location(config.content, Story(parse_id(str(match.story_id)), language, match.path))
    with suppress(OSError):  # stdin and a page of S3 are no files
        return Path(file.name).samefile(page)
    return False


@partial(make_command, needs_config=False)
@click.argument("a")
@click.argument("b")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="PATH", help="Write the comparison as an HTML page instead."
)
@json_option
def compare(config: "Config | None", a: str, b: str, html: Path | None, as_json: bool) -> None:
    """Show the passages that A and B share; each is a story's id or a file (a page or plain text).

    Two files need no configuration.
    """
    from neardup.app import make_comparer
    from neardup.cli import output
    from neardup.core.languages import SHIPPED
    from neardup.moderation.evidence.page import write_evidence
    from neardup.moderation.evidence.terminal import render_pair
    from neardup.query.compare import compare as compare_texts

    if html is not None:
        refuse_missing_folder("--html", html)
        with console.show_waiting("compare"):
            run_async(
                lambda _: write_evidence(make_comparer(config), a, b, html, config.registry if config else SHIPPED)
            )
        click.echo(f"{html}", err=True)
        return
    with console.show_waiting("compare"):
        comparison = run_async(lambda _: compare_texts(make_comparer(config), a, b))
    print_answer(comparison, lambda: output.out.print(render_pair(comparison)), as_json=as_json)


@make_command
@click.argument("story", metavar="ID")
@json_option
def show(config: "Config", story: str, as_json: bool) -> None:
    """Show the similarity of a story: its sources by share, and the copied passages.

    The similarity is the share of its words that stand in earlier stories by other authors.
    """
    from neardup.app import open_readers
    from neardup.cli import output
    from neardup.moderation.evidence.terminal import render_report
    from neardup.query.similarity import compute_similarity

    story_id = parse_story_id(story)
    with console.show_waiting("show"):
        report = run_async(
            lambda _: compute_similarity(config.ledger.path, lambda: open_readers(config), story_id, story)
        )
    print_answer(report, lambda: output.out.print(render_report(report)), as_json=as_json)


@make_command
@click.argument("story", metavar="ID", required=False)
@click.option("--head", is_flag=True, help="Print the signed head of the log alone, to be kept elsewhere.")
@click.option("--since", type=click.Path(path_type=Path), metavar="FILE", help="Prove that the log continues a head.")
@click.option("--new-key", is_flag=True, help="Make the key ledger.proof_key, print its public key, and exit.")
def proof(config: "Config", story: str | None, since: Path | None, *, head: bool, new_key: bool) -> None:
    """Prove since when the texts of a story are known, as JSON that `verify-proof` verifies.

    `neardup` records each text when it first sees it, in a log whose past cannot be changed unnoticed.
    """
    import msgspec

    from neardup.query.proof import make_key, prove, prove_head, read_proof

    if sum([story is not None, head, since is not None, new_key]) != 1:
        raise Misuse("proof: give either the ID of a story, --head, --since or --new-key")
    if new_key:
        click.echo(make_key(config.ledger.proof_key))
        return
    if story is not None:
        found = prove(config, parse_story_id(story))
        if found is None:
            raise Fatal(f"no text of {story} was recorded: it is unknown, forgotten, or older than the log")
        made = found
    else:
        made = prove_head(config, None if since is None else read_proof(_read(since)).head)
    click.echo(msgspec.json.format(msgspec.json.encode(made), indent=2))


@partial(make_command, needs_config=False)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--key", required=True, metavar="KEY", help="The public key, or the file that holds it.")
@click.option("--page", type=click.Path(path_type=Path), metavar="PAGE", help="Show which entry is that of this page.")
def verify_proof(config: "Config | None", file: Path, key: str, page: Path | None) -> None:
    """Verify what `neardup proof` printed to FILE; needs no ledger and no network.

    Exits with 1 where the proof does not hold.
    """
    from neardup.query.proof import read_proof, verify
    from neardup.records import format_count, format_time

    public_key = _read(Path(key)).decode(errors="replace") if Path(key).is_file() else key
    verified = verify(read_proof(_read(file)), public_key, None if page is None else _read(page))
    for entry in verified.proof.entries:
        shown = ", the text of the page" if entry == verified.of_page else ""
        click.echo(f"{verified.proof.story} known since {format_time(entry.seen_at)}: {entry.text_sha256}{shown}")
    if verified.proof.since:
        click.echo("the log of the earlier head is the beginning of this one")
    click.echo(f"proved by the signed head of {format_count(verified.head.size, 'entry', 'entries')}")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Misuse(f"cannot read {path}: {error.strerror}") from error
