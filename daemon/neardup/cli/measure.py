"""The commands that measure and project: `evaluate`, `audit`, `plan`, `replay`."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from neardup.cli import console
from neardup.cli.command import (
    find_language,
    json_option,
    make_command,
    parse_time_option,
    print_answer,
    print_json,
    run_async,
)
from neardup.errors import Misuse
from neardup.records import MIN_BLOCK, Language, format_time

if TYPE_CHECKING:
    import asyncio

    from neardup.config import Config
    from neardup.core.languages import Languages
    from neardup.insights.self_checks import Audited, Miss
    from neardup.insights.tables import Table
    from neardup.ledger.self_checks import Recall


score = click.FloatRange(0, 1, min_open=True)
SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) *([KMGT]?)(i?)B", re.IGNORECASE)
DIGITS = re.compile("[0-9]{1,10}")
MOST_STORIES = 2**32 - 1  # a story's number has 32 bits
DAY_MS = 24 * 3_600_000


@make_command
@click.option("--hamming", type=click.IntRange(0, 7), help="Instead of detection.hamming.")
@click.option("--jaccard", type=score, help="Instead of detection.jaccard.")
@click.option("--containment", type=score, help="Instead of detection.containment.")
@click.option("--passage-words", type=click.IntRange(MIN_BLOCK), help="Instead of detection.passage_words.")
@click.option("--rare-share", type=score, help="Instead of detection.rare_share.")
@click.option("--since", metavar="TIME", help="Only pairs verified at or after this RFC 3339 time.")
@click.option("--until", metavar="TIME", help="Only pairs verified before this time.")
@json_option
def replay(config: "Config", since: str | None, until: str | None, as_json: bool, **thresholds: float | None) -> None:
    """Show what other thresholds would flag among the candidates on record, by kind and language."""
    from msgspec.structs import replace

    from neardup.cli import output
    from neardup.insights.what_if import compare_thresholds
    from neardup.ledger import open_snapshot

    changed = {name: value for name, value in thresholds.items() if value is not None}
    if not changed or any(value != value for value in changed.values()):  # noqa: PLR0124 - click accepts nan
        options = "--hamming, --jaccard, --containment, --passage-words and --rare-share"
        raise Misuse(f"give at least one of {options}, with a number")
    languages = {name: replace(own, **changed) for name, own in config.detection.languages.items()}
    detection = replace(config.detection, **changed, languages=languages)
    period = parse_time_option("--since", since) or 0, parse_time_option("--until", until) or sys.maxsize
    if period[0] >= period[1]:
        raise Misuse("--since must be before --until")
    with open_snapshot(config.ledger.path) as db, console.show_waiting("replay"):
        facts = compare_thresholds(db, detection, *period)
    print_answer(facts, lambda: output.show_what_if(facts), as_json=as_json)


@make_command
@click.option("--sample", type=click.IntRange(2), default=300, show_default=True, help="Stories of each language.")
@click.option("--min-words", type=click.IntRange(20), default=300, show_default=True, help="Leave out shorter stories.")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random choice of stories and edits.")
@click.option(
    "--truth", type=click.Path(path_type=Path), metavar="PAIRS.jsonl", help="Score the flags on record instead."
)
@click.option("--meaning", is_flag=True, help="Fit the thresholds of translated and retold pairs instead.")
@json_option
def evaluate(
    config: "Config", *, sample: int, min_words: int, seed: int, truth: Path | None, meaning: bool, as_json: bool
) -> None:
    """Measure recall on copies made from your own stories, or on pairs that you labelled.

    Without --truth, this command copies stories of the configured source, with known edits, into a
    temporary folder, and runs the real pipeline on it with the thresholds of [detection].  It does
    not touch ledger or index.  With --truth, it scores the flags of the ledger against a file of
    JSON lines.  Each line names two stories, a and b, and may give their kind, their Jaccard
    similarity j and their containment c.  With --meaning, it fits the thresholds of translated and
    retold pairs to the stories that `neardup embed` has searched for, and keeps them with their vectors.
    """
    from neardup.cli import output
    from neardup.insights import copies
    from neardup.insights.tables import show
    from neardup.insights.truth import make_label_tables, read_labels, score_flags
    from neardup.ledger import open_snapshot

    if meaning and truth is not None:
        raise Misuse("--meaning and --truth exclude each other")
    if meaning:
        from neardup.insights.meaning import evaluate_meaning, make_meaning_tables

        with console.show_waiting("evaluate"):
            facts = run_async(lambda _: evaluate_meaning(config))
        tables = make_meaning_tables(facts)
    elif truth is not None:
        labels = read_labels(truth)
        with open_snapshot(config.ledger.path) as db, console.show_waiting("evaluate"):
            facts = score_flags(db, labels)
        tables = make_label_tables(facts)
    else:
        progress = copies.Progress(console.show_count, console.show_progress)
        facts = run_async(lambda _: copies.evaluate_copies(config, sample, min_words, seed, progress))
        tables = copies.make_copies_tables(facts)
    print_answer(facts, lambda: show(output.out, tables), as_json=as_json)


@make_command
@click.option("--stories", "counts", multiple=True, metavar="LANGUAGE=N", help="Instead of a sample; may be repeated.")
@click.option(
    "--sample",
    type=click.IntRange(1, 100_000),
    default=3000,
    show_default=True,
    help="Total number of stories to read.",
)
@click.option(
    "--daily", type=click.IntRange(0, MOST_STORIES), default=10_000, show_default=True, help="New stories a day."
)
@click.option("--memory", default="8GiB", show_default=True, help="Memory of the box.")
@json_option
def plan(config: "Config", *, counts: tuple[str, ...], sample: int, daily: int, memory: str, as_json: bool) -> None:
    """Project what the corpus needs: memory, disk and time, and when the box will be full.

    This command lists the configured source once, and runs the pipeline on a sample of its stories in
    a temporary folder.  It does not touch ledger or index.  With --stories it reads nothing, and
    assumes typical stories.
    """
    from neardup.cli import output
    from neardup.insights import plan as projection

    memory_bytes = _parse_size(memory)
    stories, pages = _parse_counts(config.registry, counts), None
    if not counts:
        with console.show_count("plan") as show_listed:
            pages = run_async(lambda _: projection.read_sample(config, sample, show_listed))
        stories = pages.listed
    facts = projection.plan(pages, stories, daily, memory_bytes)

    def show() -> None:
        for part in projection.plan_tables(facts):
            output.out.print(part)
            output.out.print()

    print_answer(facts, show, as_json=as_json)


def _parse_counts(languages: "Languages", options: tuple[str, ...]) -> Counter[Language]:
    """Parse the LANGUAGE=N options into stories by language.  Raises Misuse."""
    counts: Counter[Language] = Counter()
    for option in options:
        name, _, digits = option.partition("=")
        if not DIGITS.fullmatch(digits) or int(digits) > MOST_STORIES:
            raise Misuse(f"--stories: {option!r} is not LANGUAGE=N, with a whole number up to {MOST_STORIES}")
        counts[find_language(languages, name, "--stories")] += int(digits)
    return counts


def _parse_size(size: str) -> int:
    """Parse a size such as 8GiB, 8GB or 512MiB into bytes.  Raises Misuse."""
    found = SIZE.fullmatch(size.strip())
    if not found:
        raise Misuse(f"--memory: {size!r} is not a size such as 8GiB")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix.upper() or " "))


@make_command
@click.option("--sample", type=click.IntRange(1, 10_000), default=200, show_default=True, help="Stories to compare.")
@click.option("--since", metavar="TIME", help="Sample stories known since this RFC 3339 time.  [24 hours ago]")
@json_option
def audit_(config: "Config", sample: int, since: str | None, as_json: bool) -> None:
    """Measure what the index misses: compare some of the latest stories with all others, without the index.

    Pairs are verified on the texts.  Those that should be flagged and are not are listed, each with a reason.
    """
    from neardup.app import open_app
    from neardup.cli import output
    from neardup.insights.self_checks import audit
    from neardup.insights.tables import show
    from neardup.ledger import now_ms

    known_since = parse_time_option("--since", since)
    known_since = now_ms() - DAY_MS if known_since is None else known_since

    async def run(_: "asyncio.Event") -> "Audited":
        async with open_app(config) as app:
            return await audit(app, sample, known_since)

    with console.show_waiting("audit"):
        done = run_async(run)
    figures = {name: getattr(done, name) for name in ("stories", "unreadable", "compared", "candidates", "left_out")}
    if as_json:
        facts = {
            "since": format_time(known_since),
            **figures,
            "recall": [_make_recall_facts(recall) for recall in done.recalls],
            "misses": done.misses,
        }
        print_json(facts)
        return
    click.echo(", ".join(f"{name.replace('_', ' ')} {n:,}" for name, n in figures.items()))
    show(output.out, [_make_recall_table(done.recalls), _make_miss_table(done.misses)])


def _make_recall_facts(recall: "Recall") -> dict[str, object]:
    from neardup.core.intervals import estimate_share

    measured = estimate_share(recall.found, recall.total)
    row = {"language": recall.language, "tier": recall.subject, "found": recall.found, "n": recall.total}
    return {**row, "share": measured.share, "low": measured.low, "high": measured.high}


def _make_recall_table(found: "Sequence[Recall]") -> "Table":
    from neardup.insights.tables import Table, format_interval
    from neardup.ledger import self_checks

    rows = map(_make_recall_facts, sorted(found, key=lambda recall: recall.language == self_checks.ALL))
    return Table(
        "Recall",
        "The share of flagged pairs among those that should be flagged, by the kind that the texts make them.",
        ("language", "tier", "n", "found", "recall", "95 % interval"),
        [(*(row[name] for name in ("language", "tier", "n", "found", "share")), format_interval(row)) for row in rows],
    )


def _make_miss_table(misses: "Sequence[Miss]") -> "Table":
    from msgspec.structs import astuple

    from neardup.insights.tables import SHOWN_PAIRS, Table

    return Table(
        f"Not flagged ({len(misses):,})",
        "" if len(misses) <= SHOWN_PAIRS else f"The first {SHOWN_PAIRS}; --json prints all.",
        ("story", "match", "language", "kind", "Jaccard", "containment", "reason"),
        [(str(miss.story_id), str(miss.matched_id), *astuple(miss)[2:]) for miss in misses[:SHOWN_PAIRS]],
    )
