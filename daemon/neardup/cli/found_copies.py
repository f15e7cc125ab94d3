"""The copies that a scan found, on stdout: cluster by cluster, each pair with its passages."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import groupby
from typing import TYPE_CHECKING

import click

from neardup.cli import console

if TYPE_CHECKING:
    from neardup.config import Config
    from neardup.moderation.evidence.fragments import Fragment
    from neardup.moderation.export.passages import CopiedPassages
    from neardup.moderation.export.table import ExportRow
    from neardup.pages.reader_pool import OpenReaderPool

MOST_PAIRS = 1_000  # more than a person reads; an export has all
FIRST_WORDS, LAST_WORDS = 14, 6  # shown of a long passage


async def show_copies(config: "Config", open_pool: "OpenReaderPool") -> None:
    """Print the open flags: the clusters, the most severe pair first, and then the pairs that join no cluster.

    At most MOST_PAIRS pairs are printed, of which the first MAX_PAIRS_WITH_PASSAGES have their passages.
    """
    from neardup.ledger import clusters, flags, read, snapshot, translate_errors
    from neardup.moderation.export.pairs import export_row
    from neardup.moderation.export.passages import MAX_PAIRS_WITH_PASSAGES, copied_passages

    path = config.ledger.path
    with closing(read(path)) as db, translate_errors(path), snapshot(db):
        total, cluster_of = flags.count(db), clusters.by_story(db)
        pairs = [export_row(row, cluster_of) for row in flags.select(db, limit=MOST_PAIRS)]
    if not pairs:
        click.echo("No copies.")
        return
    first = {pair["flag_id"]: (pair["matched_id"], pair["story_id"]) for pair in pairs[:MAX_PAIRS_WITH_PASSAGES]}
    with console.show_waiting("scan"):
        passages = await copied_passages(config, open_pool, first)
    for number, members in enumerate(_by_cluster(pairs), 1):
        for line in _heading(members, number):
            click.echo(line)
        for pair in members:
            for line in _pair(pair, passages.get(pair["flag_id"])):
                click.echo(line)
        click.echo()
    if total > len(pairs):
        click.echo(f"and {total - len(pairs):,} more pairs, which --format csv writes")


def _by_cluster(pairs: "Sequence[ExportRow]") -> "list[list[ExportRow]]":
    """The pairs of each cluster, in the order of its most severe pair, and then those of no cluster."""
    place: dict[int, int] = {}
    for pair in pairs:
        if pair["cluster_id"] is not None:
            place.setdefault(pair["cluster_id"], len(place))
    ranked = sorted(pairs, key=lambda pair: place.get(pair["cluster_id"], len(place)))
    return [list(members) for _, members in groupby(ranked, lambda pair: pair["cluster_id"])]


def _heading(pairs: "Sequence[ExportRow]", number: int) -> Iterator[str]:
    if pairs[0]["cluster_id"] is None:
        yield f"Pairs that join no cluster: {len(pairs):,}"
        return
    yield f"Cluster {number}: {pairs[0]['cluster_size']:,} texts"


def _pair(pair: "ExportRow", copied: "CopiedPassages | None") -> Iterator[str]:
    from neardup.cli.printing import larger_containment
    from neardup.moderation.evidence.side_by_side import abridged, plain

    names = (plain(pair[f"{side}_title"]) for side in ("story", "matched"))
    words = "" if pair["copied_words"] is None else f"{pair['copied_words']:,} words"
    yield f"  {pair['kind']:8} {larger_containment(pair):>5} {words:>12}  {'  =  '.join(names)}"
    if copied is None:
        return
    for passage in copied.passages:
        yield f"      «{abridged(_text(passage.b), FIRST_WORDS, LAST_WORDS)}»"
    if copied.more:
        yield f"      and {copied.more:,} more passages"


def _text(fragments: "Sequence[Fragment]") -> str:
    """A passage, without the words around it."""
    from neardup.moderation.evidence.alignment import Mark

    copied = [n for n, fragment in enumerate(fragments) if fragment.mark is not Mark.PLAIN]
    shown = fragments[copied[0] : copied[-1] + 1] if copied else ()
    return "".join(" […] " if fragment.mark is Mark.ELIDED else fragment.text for fragment in shown)
