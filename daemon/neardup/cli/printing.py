"""The results of the commands, as tables on stdout."""

import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from neardup.timestamps import readable, rfc3339

if TYPE_CHECKING:
    from neardup.pipeline.summary import RunSummary, Summary, SweepSummary
    from neardup.query.check_result import CheckResult

SHOWN_FLAGS = 25
OF_WORKS = ("catalogue", "licence")  # the columns of a check that matches works

out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def show_run(summary: "RunSummary") -> None:
    """Print the figures of a run, one a line."""
    facts = summary.as_dict()
    rows = {name: facts[name] for name in ("listed", "fingerprinted")}
    for name in ("skipped", "dead_lettered", "flagged"):
        rows[name.replace("_", "-")] = by_reason(getattr(summary.counts, name))
    for reason, example in summary.counts.examples.items():
        rows[f"example of {reason}"] = escape(example)
    rows["time"] = f"{facts['seconds']} s, {facts['stories_per_second']} stories/s"
    show_summary(summary, rows)
    unusual = [f"unusual texts: {line}" for line in summary.unusual_texts]
    for line in index_repairs(asdict(summary.index_faults)) + unusual:
        out.print(f"[yellow]warning[/]: {line}", soft_wrap=True)


def index_repairs(faults: Mapping[str, int]) -> list[str]:
    """What a run found lost in the index and repaired, in a line; none if nothing was lost."""
    if not faults.get("incomplete") and not faults.get("rebuilds"):
        return []
    how = "it was rebuilt" if faults["rebuilds"] else "they were written again"
    again = f"; {faults['looked_up_again']:,} stories were looked up again" if faults["looked_up_again"] else ""
    found = f"{faults['incomplete']:,} of {faults['sampled']:,} sampled stories lacked entries"
    return [f"the index had lost data: {found}, {how}{again}"]


def show_sweep(summary: "SweepSummary") -> None:
    """Print the figures of a sweep, one a line."""
    rows: dict[str, object] = {
        "compared": f"{summary.stories:,} stories",
        "nominated": f"{summary.candidates:,} pairs",
        "left out": f"{summary.left_out:,} pairs by max_matches; "
        f"{summary.capped_runs:,} buckets were cut by max_bucket; "
        f"{summary.common_passages:,} passages are common and nominated no candidates",
        "flagged": by_reason(summary.flagged),
        "time": f"{summary.as_dict()['seconds']} s",
    }
    show_summary(summary, rows)


def show_summary(summary: "Summary", rows: dict[str, object]) -> None:
    """Print the figures, and a line for each hook that failed."""
    show_outcome(summary.command, summary.status, rows)
    for hook, why in summary.warnings.items():
        out.print(f"[yellow]warning[/]: {escape(f'{hook} failed: {why}')}", soft_wrap=True)


def by_reason(counter: Counter[str]) -> str:
    """Format a total and its parts, such as "12  (near 9, exact 3)"."""
    parts = f"  ({', '.join(f'{reason} {n:,}' for reason, n in sorted(counter.items()))})" if counter else ""
    return f"{counter.total():,}{parts}"


def show_outcome(command: str, status: str, rows: dict[str, object]) -> None:
    """Print how a command ended, and its figures."""
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, value in rows.items():
        table.add_row(name, str(value))
    out.print(f"\n[bold]{command}[/] {'is done' if status == 'done' else 'stopped; run it again to go on'}")
    out.print(table)


def show_flags(records: list[dict[str, Any]], total: int) -> None:
    """Print the pairs that a run flagged, the most severe first; `total` counts those that are not printed too."""
    if not records:
        out.print("\nNo new flags.")
        return
    table = Table(title=f"New flags ({total:,})", title_justify="left", header_style="bold", expand=False)
    for column in ("kind", "bits", "alike", "language", "story", "matches", "published before", "same author"):
        table.add_column(column, overflow="fold")
    for pair in records[:SHOWN_FLAGS]:
        table.add_row(
            pair["kind"],
            str(pair["hamming"]),
            larger_containment(pair),
            pair["language"],
            Text(f"{pair['story_name'] or pair['story_id']} {pair['story_title']}"),
            Text(f"{pair['matched_name'] or pair['matched_id']} {pair['matched_title']}"),
            "not known" if pair["earlier_id"] is None else pair["matched_name"] or str(pair["earlier_id"]),
            {True: "yes", False: "no", None: ""}[pair["same_author"]],
        )
    out.print()
    out.print(table)
    if total > SHOWN_FLAGS:
        out.print(f"and {total - SHOWN_FLAGS:,} more")


def larger_containment(pair: dict[str, Any]) -> str:
    """Format the larger of a pair's two containments as a percentage, with a ~ if it is estimated."""
    if pair["containment"] is None:
        return ""
    return f"{'~' if pair['estimated'] else ''}{max(pair['containment'], pair['matched_containment']):.0%}"


def show_check(result: "CheckResult") -> None:
    """Print the verdict on a checked text, and the stories that it would be flagged against."""
    for reason in result.reasons:
        out.print(f"[yellow]warning[/]: {escape(reason)}", soft_wrap=True)
    if not result.matches:
        out.print("No match.")
        return
    out.print(f"verdict [bold]{result.verdict}[/]: {result.similarity:.0%} of {result.words:,} words are copied")
    has_works = any(match.catalogue for match in result.matches)
    table = Table(header_style="bold")
    for column in ("kind", "bits", "alike", "story", "title", "author", "published", *OF_WORKS * has_works):
        table.add_column(column, overflow="fold")
    for match in result.matches:
        published = readable(rfc3339(match.published_at)) or ("" if match.catalogue else "not known")
        cells = (
            match.kind,
            match.hamming,
            larger_containment(match.as_dict()),
            match.name or match.story_id,
            match.title,
            match.author_id,
            published,
            *(match.catalogue, match.licence) * has_works,
        )
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in cells))
    out.print(table)


def show_dead_letters(counts: dict[str, int], dead_letters: list[dict[str, Any]]) -> None:
    """Print dead letters, the latest first, and their number by reason."""
    if not dead_letters:
        out.print("No dead letters.")
        return
    out.print(by_reason(Counter(counts)))
    table = Table(header_style="bold")
    for column in ("key", "reason", "times", "last at", "why"):
        table.add_column(column, overflow="fold")
    for row in dead_letters:
        listed = (row["story"] and row["story"].get("name")) or row["key"]
        cells = (listed, row["reason"], row["attempts"], readable(row["last_at"]), row["error"])
        table.add_row(*(Text(str(cell)) for cell in cells))
    out.print(table)
    if (rest := sum(counts.values()) - len(dead_letters)) > 0:
        out.print(f"and {rest:,} more; --json prints all")


def show_what_if(facts: dict[str, Any]) -> None:
    """Print what other thresholds would have flagged."""
    table = Table(header_style="bold")
    for column in ("language", "kind", "flags", "replayed", "plus", "minus"):
        table.add_column(column, justify="left" if column in ("language", "kind") else "right")
    for language, kinds in facts["by_language"].items():
        for kind, tally in kinds.items():
            table.add_row(language, kind, *(f"{n:,}" for n in tally.values()))
    out.print(table)
    out.print(f"{facts['replayed']:,} flags instead of {facts['flags']:,}, of {facts['pairs']:,} pairs on record")
    verdicts = facts["verdicts"]
    if verdicts["real"] or verdicts["not_similar"]:
        out.print(
            f"of {verdicts['real']:,} pairs decided to be copies {by_reason(Counter(verdicts['lost']))} would not have"
            f" been flagged; of {verdicts['not_similar']:,} decided to be not similar {verdicts['spared']:,} would not"
            " have been flagged"
        )
