"""The state of ledger and indexes, printed section by section."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from neardup.cli.printing import by_reason, index_repairs, out
from neardup.timestamps import readable, rfc3339

if TYPE_CHECKING:
    from neardup.ledger.marks import MarkCount
    from neardup.ledger.scrubbing import Scrubbing
    from neardup.ledger.works import Catalogue
    from neardup.ops.cluster_status import ClusterStatus
    from neardup.ops.recall_status import RecallStatus
    from neardup.ops.status import Status


def show_status(status: "Status") -> None:
    """Print the state of ledger and index, section by section."""
    for name, lines in _status_sections(status):
        out.print(f"[bold]{name}[/]")
        for line in lines:
            out.print(f"  {line}", markup=False)


def _cluster_line(cluster: "ClusterStatus") -> str:
    weakest, furthest = cluster.weakest_edge, cluster.furthest_apart
    chain = f"a chain: {furthest.a} and {furthest.b} have little in common" if cluster.chain else ""
    original = cluster.likely_original
    order = "order of publication not known" if original is None else f"likely original {original}"
    return f"{cluster.size:,} stories, {order}, weakest edge {weakest.a} - {weakest.b} ({weakest.score:.0%})" + (
        f", {chain}" if chain else ""
    )


def _status_sections(status: "Status") -> Iterable[tuple[str, list[str]]]:
    running = status.running
    yield (
        "running",
        [
            f"{running['command']}, process {running.get('pid')}, since {readable(running.get('since'))}"
            if running
            else "nothing"
        ],
    )
    if waiting := status.waiting:
        yield "waiting", [f"for the {waiting.what} since {readable(waiting.since)}: {waiting.why}"]
    yield "stories", [f"{language:10} {n:>12,}" for language, n in status.stories.items()] or ["none"]
    yield (
        "open flags",
        [
            f"{language:10} " + ", ".join(f"{kind} {n:,}" for kind, n in kinds.items())
            for language, kinds in status.flags.items()
        ]
        or ["none"],
    )
    yield "open cases", [f"{status.cases.cases:,}, with {status.cases.pairs:,} pairs"]
    verdicts = status.verdicts
    yield "verdicts", [by_reason(Counter(verdicts.judged))]
    yield "suppressed pairs", [by_reason(Counter(verdicts.kept))]
    yield "open flags with a verdict on another pair", [by_reason(Counter(verdicts.in_context))]
    yield "clusters", [str(status.clusters.count), *map(_cluster_line, status.clusters.largest)]
    yield "candidates", [f"{status.candidates_pending:,} pending, {status.near_misses:,} near misses on record"]
    if status.sweep_owed:
        yield "owed", ["a sweep, because not all stories have been compared: run `neardup sweep`"]
    yield "dead letters", [f"{reason:14} {n:,}" for reason, n in status.dead_letters.items()] or ["none"]
    yield "marks", list(map(_mark_line, status.marks)) or ["none"]
    yield "unusual texts", status.unusual_texts or ["none"]
    pages, unsettled, forgotten = asdict(status.submissions).values()
    yield (
        "submitted stories",
        [f"{pages:,} pages kept, {unsettled:,} to look up once more, {forgotten:,} forgotten"],
    )
    if status.reference:
        warning = [f"warning: {status.reference_warning}"] if status.reference_warning else []
        yield "reference", [*_catalogue_lines(status.reference), *warning]
    yield "watermark", [readable(status.watermark) or "none yet"]
    index = asdict(status.index)
    largest_buckets = index.pop("hottest_buckets", {})
    yield "index", [f"{name}: {value}" for name, value in index.items()]
    yield "largest buckets", [f"{name:30} {n:>12,}" for name, n in largest_buckets.items()] or ["none"]
    yield "scrub", [_scrub_line(status.scrub)]
    yield "passages", list(_passage_lines(asdict(status.passages)))
    if status.self_checks:
        yield "copies found by self-checks", [line for one in status.self_checks for line in _recall_lines(one)]
    yield (
        "last runs",
        [
            f"{readable(run['started_at'])} {run['command']:9} {run['status']:8}"
            f" listed {run['counts'].get('listed', 0):,}"
            + _unread(run["counts"])
            + (f"  limited by {run['counts']['limited_by']}" if "limited_by" in run["counts"] else "")
            + (f"  {run['error']}" if run["error"] else "")
            + "".join(f"  {hook} failed: {why}" for hook, why in run["counts"].get("warnings", {}).items())
            + "".join(f"  warning: {line}" for line in index_repairs(run["counts"].get("index", {})))
            for run in status.runs
        ]
        or ["none"],
    )


def _mark_line(one: "MarkCount") -> str:
    detail = f" {one.detail}" if one.detail else ""
    return f"{one.reason}: {one.language}{detail} {one.stories:,}, such as story {one.example}"


def _scrub_line(scrub: "Scrubbing") -> str:
    ended = rfc3339(scrub.round_ended_at)
    rounds = f"every story was compared by {readable(ended)}" if ended else "no round has ended yet"
    return (
        f"{rounds}; this round is at number {scrub.number:,}; of {scrub.stories:,} compared {scrub.incomplete:,} lacked"
        f" entries; {scrub.damaged:,} passage segments were damaged"
    )


def _catalogue_lines(catalogues: "Sequence[Catalogue]") -> Iterator[str]:
    for one in catalogues:
        lacking = one.without_fingerprint
        mend = f", {lacking:,} without fingerprint: run `neardup reference sync`" if lacking else ""
        yield f"{one.name}: {one.works:,} works, {one.open_flags:,} open flags{mend}"


def _passage_lines(passages: dict[str, Any]) -> Iterator[str]:
    common, examples = passages.pop("common", {}), passages.pop("examples", [])
    yield from (
        f"{name}: {value:,}" if isinstance(value, int) else f"{name}: {value}" for name, value in passages.items()
    )
    yield f"common passages, which nominate no candidates: {by_reason(Counter(common))}"
    for one in examples:
        story = "" if one["example"] is None else f", such as {one['example']} {one['example_title'] or ''}"
        yield f"  {one['language']} {one['holders']:,} stories{story}".rstrip()


def _recall_lines(one: "RecallStatus") -> Iterator[str]:
    """The recall of each subject in all languages, and then what is lower than in the month before."""
    from neardup.ledger.recalls import ALL

    of_all = [row for row in one.recalls if row.language == ALL]
    found = ", ".join(f"{row.subject} {row.found:,} of {row.total:,}" for row in of_all)
    yield f"{one.measure} {readable(one.measured_at)}: {found or 'none tried'}"
    for row in one.recalls:
        if row.fewer_than_before:
            yield f"  warning: {row.language}, {row.subject}: {row.found:,} of {row.total:,}, more in the month before"


def _unread(counts: dict[str, Any]) -> str:
    """Why stories of a run were skipped or dead-lettered, such as ", missing 12 (story 5 at pages/5.html)"."""
    examples = counts.get("examples", {})
    reasons = counts.get("skipped", {}) | counts.get("dead_lettered", {})
    return "".join(
        f", {reason} {n:,}" + (f" (such as {examples[reason]})" if reason in examples else "")
        for reason, n in reasons.items()
    )
