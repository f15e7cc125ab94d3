"""The results of the commands, as tables on stdout."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from neardup.records import format_count, format_percent, format_readable_time, format_time

if TYPE_CHECKING:
    from neardup.ledger.marks import MarkCount
    from neardup.ledger.outbox import Scrubbing
    from neardup.ledger.stories import Catalogue
    from neardup.ops.status import ClusterStatus, RecallStatus, Status
    from neardup.pipeline.summary import RunSummary, Summary, SweepSummary
    from neardup.query.check import CheckResult


SHOWN_FLAGS = 25
OF_WORKS = ("catalogue", "licence")  # the columns of a check that matches works
NUMBERS = {"stories", "works", "without fingerprint", "open flags", "flags", "replayed", "plus", "minus"}  # columns

out = Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def show_run(summary: "RunSummary") -> None:
    """Print the figures of a run, one a line."""
    facts = summary.as_dict()
    rows = {name: facts[name] for name in ("listed", "fingerprinted")}
    for name in ("skipped", "dead_lettered", "flagged"):
        rows[name.replace("_", "-")] = format_reasons(getattr(summary.counts, name))
    if summary.counts.removed:
        rows["removed"] = format_count(
            summary.counts.removed, "story whose page is gone", "stories whose pages are gone"
        )
    for reason, example in summary.counts.examples.items():
        rows[f"example of {reason}"] = escape(example)
    rows["time"] = f"{facts['seconds']} s, {facts['stories_per_second']} stories/s"
    show_summary(summary, rows)
    unusual = [f"unusual texts: {line}" for line in summary.unusual_texts]
    for line in describe_repairs(asdict(summary.index_faults)) + unusual:
        out.print(f"[yellow]warning[/]: {line}", soft_wrap=True)


def describe_repairs(faults: Mapping[str, int]) -> list[str]:
    """What a run found lost in the index and repaired, in a line; none if nothing was lost."""
    if not faults.get("incomplete") and not faults.get("rebuilds"):
        return []
    how = "it was rebuilt" if faults["rebuilds"] else "they were written again"
    looked_up = format_count(faults["looked_up_again"], "story was looked up again", "stories were looked up again")
    again = f"; {looked_up}" if faults["looked_up_again"] else ""
    found = f"{faults['incomplete']:,} of {faults['sampled']:,} sampled stories lacked entries"
    return [f"the index had lost data: {found}, {how}{again}"]


def show_sweep(summary: "SweepSummary") -> None:
    """Print the figures of a sweep, one a line."""
    rows: dict[str, object] = {
        "compared": format_count(summary.stories, "story", "stories"),
        "nominated": format_count(summary.candidates, "pair", "pairs"),
        "left out": f"{format_count(summary.left_out, 'pair', 'pairs')} by max_matches; "
        + format_count(summary.common_passages, "passage is", "passages are")
        + " common and nominated no candidates",
        "flagged": format_reasons(summary.flagged),
        "time": f"{summary.as_dict()['seconds']} s",
    }
    show_summary(summary, rows)


def show_summary(summary: "Summary", rows: dict[str, object]) -> None:
    """Print the figures, and a line for each hook that failed."""
    show_outcome(summary.command, summary.status, rows)
    for hook, why in summary.warnings.items():
        out.print(f"[yellow]warning[/]: {escape(f'{hook} failed: {why}')}", soft_wrap=True)


def format_reasons(counter: Counter[str]) -> str:
    """Format a total and its parts by name, such as "12  (exact 3, near 9)"."""
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
    for column in ("kind", "similarity", "language", "story", "matches", "published before", "same author"):
        table.add_column(column, overflow="fold")
    for pair in records[:SHOWN_FLAGS]:
        table.add_row(
            pair["kind"],
            format_similarity(pair),
            pair["language"],
            Text(f"{pair['story_id']} {pair['story_title']}"),
            Text(f"{pair['matched_id']} {pair['matched_title']}"),
            "not known" if pair["earlier_id"] is None else str(pair["earlier_id"]),
            {True: "yes", False: "no", None: ""}[pair["same_author"]],
        )
    out.print()
    out.print(table)
    if total > SHOWN_FLAGS:
        out.print(f"and {total - SHOWN_FLAGS:,} more")


def format_similarity(pair: dict[str, Any]) -> str:
    """Format the similarity of a pair as a percentage, with a ~ if it is estimated."""
    return f"{'~' if pair['estimated'] else ''}{format_percent(pair['similarity'])}"


def show_check(result: "CheckResult") -> None:
    """Print the verdict on a checked text, and the stories that it would be flagged against."""
    for reason in result.reasons:
        out.print(f"[yellow]warning[/]: {escape(reason)}", soft_wrap=True)
    if not result.matches:
        out.print("No match.")
        return
    out.print(f"verdict [bold]{result.verdict}[/]: {result.similarity:.0%} of {result.words:,} words are copied")
    has_works = any(match.catalogue for match in result.matches)
    rows = [
        (
            match.kind if match.permission_id is None else f"{match.kind}, permitted",
            format_similarity(match.as_dict()),
            match.story_id,
            match.title,
            match.author_id,
            format_readable_time(format_time(match.published_at)) or ("" if match.catalogue else "not known"),
            *(match.catalogue, match.licence) * has_works,
        )
        for match in result.matches
    ]
    show_rows(("kind", "similarity", "story", "title", "author", "published", *OF_WORKS * has_works), rows)


def show_rows(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; None is an empty cell."""
    table = Table(header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", justify="right" if column in NUMBERS else "left")
    for cells in rows:
        shown = zip(columns, ("" if cell is None else cell for cell in cells), strict=True)
        table.add_row(*(Text(f"{cell:,}" if column in NUMBERS else str(cell)) for column, cell in shown))
    out.print(table)


def show_dead_letters(counts: dict[str, int], dead_letters: list[dict[str, Any]]) -> None:
    """Print dead letters, the latest first, and their number by reason."""
    if not dead_letters:
        out.print("No dead letters.")
        return
    out.print(format_reasons(Counter(counts)))
    rows = [
        (row["key"], row["reason"], row["attempts"], format_readable_time(row["last_at"]), row["error"])
        for row in dead_letters
    ]
    show_rows(("key", "reason", "times", "last at", "why"), rows)
    if (rest := sum(counts.values()) - len(dead_letters)) > 0:
        out.print(f"and {rest:,} more; --json prints all")


def show_dead_events(events: list[dict[str, Any]], total: int) -> None:
    """Print dead events of webhooks, the latest first, of `total` in all."""
    if not events:
        out.print("No dead events.")
        return
    rows = [(row["key"], row["text"], row["attempts"], row["event"]["at"], row["error"]) for row in events]
    show_rows(("key", "event", "times", "at", "why"), rows)
    if total > len(events):
        out.print(f"and {total - len(events):,} more; --json prints all")


def show_what_if(facts: dict[str, Any]) -> None:
    """Print what other thresholds would have flagged."""
    rows = [
        (language, kind, *tally.values())
        for language, kinds in facts["by_language"].items()
        for kind, tally in kinds.items()
    ]
    show_rows(("language", "kind", "flags", "replayed", "plus", "minus"), rows)
    replayed, pairs = format_count(facts["replayed"], "flag", "flags"), format_count(facts["pairs"], "pair", "pairs")
    out.print(f"{replayed} instead of {facts['flags']:,}, of {pairs} on record")
    verdicts = facts["verdicts"]
    if verdicts["real"] or verdicts["not_similar"]:
        out.print(
            f"of {verdicts['real']:,} pairs decided to be copies"
            f" {format_reasons(Counter(verdicts['lost']))} would not have"
            f" been flagged; of {verdicts['not_similar']:,} decided to be not similar {verdicts['spared']:,} would not"
            " have been flagged"
        )


def show_catalogues(catalogues: "Sequence[Catalogue]") -> None:
    """Print the catalogues on record, with their licences and counts."""
    if not catalogues:
        out.print("No catalogues.")
        return
    rows = [
        (found.name, ", ".join(found.licences), found.works, found.without_fingerprint, found.open_flags)
        for found in catalogues
    ]
    show_rows(("catalogue", "licences", "works", "without fingerprint", "open flags"), rows)


# `status`, section by section


def show_status(status: "Status") -> None:
    """Print the state of ledger and index, section by section."""
    sections = Text()
    for name, lines in _list_status_sections(status):
        sections.append(f"{name}\n", "bold")
        sections.append("".join(f"  {line}\n" for line in lines))
    out.print(sections, end="")


def _format_cluster(cluster: "ClusterStatus") -> str:
    weakest, furthest = cluster.weakest_edge, cluster.furthest_apart
    chain = f"a chain: {furthest.a} and {furthest.b} have little in common" if cluster.chain else ""
    original = cluster.likely_original
    order = "order of publication not known" if original is None else f"likely original {original}"
    return (
        f"{cluster.size:,} stories, {order},"
        f" weakest edge {weakest.a} - {weakest.b} ({format_percent(weakest.similarity)})"
        + (f", {chain}" if chain else "")
    )


def _list_status_sections(status: "Status") -> Iterable[tuple[str, list[str]]]:
    yield "running", list(_format_running(status.running)) if status.running else ["nothing"]
    if daemon := status.daemon:
        yield "daemon", [f"process {daemon.get('pid')}; next run at {format_readable_time(daemon['next_run'])}"]
    if waiting := status.waiting:
        yield "waiting", [f"for the {waiting.what} since {format_readable_time(waiting.since)}: {waiting.why}"]
    yield "stories", [f"{language:10} {n:>12,}" for language, n in status.stories.items()] or ["none"]
    yield (
        "open flags",
        [
            f"{language:10} " + ", ".join(f"{kind} {n:,}" for kind, n in kinds.items())
            for language, kinds in status.flags.items()
        ]
        or ["none"],
    )
    yield "open cases", [f"{status.cases.cases:,}, with {format_count(status.cases.pairs, 'pair', 'pairs')}"]
    verdicts = status.verdicts
    yield "verdicts", [format_reasons(Counter(verdicts.judged))]
    yield "suppressed pairs", [format_reasons(Counter(verdicts.kept))]
    yield "open flags with a verdict on another pair", [format_reasons(Counter(verdicts.in_context))]
    yield "clusters", [str(status.clusters.count), *map(_format_cluster, status.clusters.largest)]
    near_misses = format_count(status.near_misses, "near miss", "near misses")
    yield "candidates", [f"{status.candidates_pending:,} pending, {near_misses} on record"]
    if status.sweep_owed:
        yield "owed", ["a sweep, because not all stories have been compared: run `neardup sweep`"]
    yield "dead letters", [f"{reason:14} {n:,}" for reason, n in status.dead_letters.items()] or ["none"]
    if any(status.webhook_events.values()):
        yield "webhook events", [f"{state:14} {n:,}" for state, n in status.webhook_events.items()]
    yield "marks", list(map(_format_mark, status.marks)) or ["none"]
    yield "unusual texts", status.unusual_texts or ["none"]
    pages, unsettled, forgotten = asdict(status.submissions).values()
    kept = format_count(pages, "page kept", "pages kept")
    yield "submitted stories", [f"{kept}, {unsettled:,} to look up once more, {forgotten:,} forgotten"]
    if status.reference:
        warning = [f"warning: {status.reference_warning}"] if status.reference_warning else []
        yield "reference", [*_format_catalogues(status.reference), *warning]
    yield "watermark", [format_readable_time(status.watermark) or "none yet"]
    index = asdict(status.index)
    largest_buckets = index.pop("hottest_buckets", {})
    yield "index", [f"{name}: {value}" for name, value in index.items()]
    yield "largest buckets", [f"{name:30} {n:>12,}" for name, n in largest_buckets.items()] or ["none"]
    yield "scrub", [_format_scrub(status.scrub)]
    yield "passages", list(_format_passages(asdict(status.passages)))
    yield "copies found by self-checks", list(_format_self_checks(status))
    yield "last runs", list(map(_format_run, status.runs)) or ["none"]


def _format_run(run: Mapping[str, Any]) -> str:
    counts = run["counts"]
    return (
        f"{format_readable_time(run['started_at'])} {run['command']:9} {run['status']:8}"
        f" listed {counts.get('listed', 0):,}"
        + _format_unread(counts)
        + (f"  limited by {counts['limited_by']}" if "limited_by" in counts else "")
        + (f"  {run['error']}" if run["error"] else "")
        + "".join(f"  {hook} failed: {why}" for hook, why in counts.get("warnings", {}).items())
        + "".join(f"  warning: {line}" for line in describe_repairs(counts.get("index", {})))
    )


def _format_mark(mark: "MarkCount") -> str:
    detail = f" {mark.detail}" if mark.detail else ""
    return f"{mark.reason}: {mark.language}{detail} {mark.stories:,}, such as story {mark.example}"


def _format_scrub(scrub: "Scrubbing") -> str:
    ended = format_time(scrub.round_ended_at)
    rounds = f"every story was compared by {format_readable_time(ended)}" if ended else "no round has ended yet"
    compared = format_count(scrub.stories, "story was compared", "stories were compared")
    damaged = format_count(scrub.damaged, "passage segment was damaged", "passage segments were damaged")
    return (
        f"{rounds}; this round has come to story number {scrub.number:,}; in all rounds {compared}, of which"
        f" {scrub.incomplete:,} lacked entries, and {damaged}"
    )


def _format_catalogues(catalogues: "Sequence[Catalogue]") -> Iterator[str]:
    for catalogue in catalogues:
        lacking = catalogue.without_fingerprint
        mend = f", {lacking:,} without fingerprint: run `neardup reference sync`" if lacking else ""
        works = format_count(catalogue.works, "work", "works")
        yield f"{catalogue.name}: {works}, {format_count(catalogue.open_flags, 'open flag', 'open flags')}{mend}"


def _format_passages(passages: dict[str, Any]) -> Iterator[str]:
    common, examples = passages.pop("common", {}), passages.pop("examples", [])
    yield from (
        f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}" for name, value in passages.items()
    )
    yield f"common passages, which nominate no candidates: {format_reasons(Counter(common))}"
    for passage in examples:
        story = "" if passage["example"] is None else f", such as {passage['example']} {passage['example_title'] or ''}"
        yield f"  {passage['language']} {format_count(passage['holders'], 'story', 'stories')}{story}".rstrip()


def _format_running(running: Mapping[str, Any]) -> Iterator[str]:
    yield f"{running['command']}, process {running.get('pid')}, since {format_readable_time(running.get('since'))}"
    if progress := running.get("progress"):
        done, left = progress["done"], progress["seconds_left"]
        yield ", ".join(
            [
                f"{progress['phase']}: {progress['listed']:,} listed",
                *([] if done is None else [f"{done:.0%} done"]),
                f"{progress['per_second']:,.0f} a second",
                *([] if left is None else [f"{timedelta(seconds=left)} left"]),
            ]
        )


def _format_self_checks(status: "Status") -> Iterator[str]:
    from neardup.ledger.self_checks import Measure

    if all(check.measure != Measure.CANARY for check in status.self_checks):
        yield f"{Measure.CANARY}: " + ("not measured yet" if status.canaries else "off, by run.canaries = 0")
    for check in status.self_checks:
        yield from _format_recalls(check)


def _format_recalls(check: "RecallStatus") -> Iterator[str]:
    """The recall of each subject in all languages, and then what is lower than in the month before."""
    from neardup.ledger.self_checks import ALL

    of_all = [row for row in check.recalls if row.language == ALL]
    found = ", ".join(f"{row.subject} {row.found:,} of {row.total:,}" for row in of_all)
    yield f"{check.measure} {format_readable_time(check.measured_at)}: {found or 'none tried'}"
    for row in check.recalls:
        if row.fewer_than_before:
            yield f"  warning: {row.language}, {row.subject}: {row.found:,} of {row.total:,}, more in the month before"


def _format_unread(counts: dict[str, Any]) -> str:
    """Why stories of a run were skipped or dead-lettered, such as ", missing 12 (such as story 5 at pages/5.html)"."""
    examples = counts.get("examples", {})
    reasons = counts.get("skipped", {}) | counts.get("dead_lettered", {})
    return "".join(
        f", {reason} {n:,}" + (f" (such as {examples[reason]})" if reason in examples else "")
        for reason, n in reasons.items()
    )
