"""The command-line options that select flags."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neardup.cli.base import parse_time_option, refuse_missing_folder, story_id
from neardup.core.verify import tiers
from neardup.errors import Misuse
from neardup.pairs import DECIDING
from neardup.records import Language

if TYPE_CHECKING:
    from neardup.config import Config
    from neardup.languages import Languages
    from neardup.option_values import Target


STATUSES = ["open", "withdrawn", *(verdict.value for verdict in DECIDING)]


def output_target(output: str) -> "Target | None":
    """What --output names; None for -, which is stdout.  Raises Misuse."""
    from neardup.option_values import target_of

    try:
        target = None if output == "-" else target_of(output)
    except ValueError as error:
        raise Misuse(f"--output: {error}") from None
    if isinstance(target, Path):
        refuse_missing_folder("--output", target)
    return target


OPTIONS = (
    click.option(
        "--language",
        "languages",
        multiple=True,
        metavar="L",
        help="A name or an ISO code, such as HINDI or hi; may be repeated.",
    ),
    click.option(
        "--kind",
        "kinds",
        multiple=True,
        type=click.Choice((*tiers.kinds(), *tiers.kinds_of_meaning())),
        help="May be repeated; translated and retold pairs are in no export of other kinds.",
    ),
    click.option("--status", "statuses", multiple=True, type=click.Choice(STATUSES), help="May be repeated.  [open]"),
    click.option(
        "--min-score",
        type=click.FloatRange(0, 1),
        help="Pairs with a Jaccard similarity or a containment of at least this.",
    ),
    click.option("--author", metavar="ID", help="Pairs with a story by this author."),
    click.option("--story", type=story_id, metavar="ID", help="Pairs that contain this story."),
    click.option("--cluster", type=story_id, metavar="ID", help="Pairs of the cluster that contains this story."),
    click.option("--catalogue", metavar="NAME", help="Copies of the works of this catalogue of [reference]."),
    click.option("--since", metavar="TIME", help="Pairs flagged at or after this RFC 3339 time."),
    click.option("--until", metavar="TIME", help="Pairs flagged before this time."),
    click.option(
        "--min-similarity",
        type=click.FloatRange(0, 1),
        help="Pairs with a story of which at least this share stands in earlier stories by others.",
    ),
    click.option(
        "--same-author",
        is_flag=True,
        help="Also partial copies and passages between stories of one author, which detection.same_author hides.",
    ),
    click.option("--new", "only_new", is_flag=True, help="Only flags that no export has written before."),
)


def takes_flag_selection(function: Callable[..., None]) -> Callable[..., None]:
    """Add OPTIONS to a command; its function receives them as one `selection`, by default all open flags."""

    @wraps(function)
    def with_selection(
        config: "Config",
        *args: Any,
        languages: tuple[str, ...],
        kinds: tuple[str, ...],
        statuses: tuple[str, ...],
        min_score: float | None,
        author: str | None,
        story: int | None,
        cluster: int | None,
        catalogue: str | None,
        since: str | None,
        until: str | None,
        min_similarity: float | None,
        same_author: bool,
        only_new: bool,
        **options: Any,
    ) -> None:
        from neardup.ledger.selection import Selection

        after, before = parse_time_option("--since", since), parse_time_option("--until", until)
        if after is not None and before is not None and after >= before:
            raise Misuse("--since must be before --until")
        selection = Selection(
            languages=tuple(language_of(config.registry, name) for name in languages),
            kinds=kinds,
            statuses=statuses or ("open",),
            score=min_score,
            author=author,
            story=story,
            cluster=cluster,
            catalogue=catalogue,
            since=after,
            until=before,
            only_new=only_new,
            similarity=min_similarity,
            same_author=same_author or config.detection.same_author == "keep",
        )
        function(config, *args, selection=selection, **options)

    for option in reversed(OPTIONS):
        with_selection = option(with_selection)
    return with_selection


def language_of(languages: "Languages", name: str) -> Language:
    """The language that --language names.  Raises Misuse."""
    try:
        return languages.find(name)
    except ValueError as error:
        raise Misuse(f"--language: {error}") from None
