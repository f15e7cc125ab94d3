"""Judges whether a run could read its stories: a wrong setting must not look like a run without trouble."""

from collections import Counter
from collections.abc import Callable, Iterable

from neardup.errors import Fatal
from neardup.pipeline.summary import READABLE, Counts, RunSummary
from neardup.records import BadRow, Dead, DeadLettered, Skip, Skipped, Story
from neardup.telemetry.log import log

LEAST_SHARE = 0.01  # of the stories that had to be read; with less, a setting is wrong
FEW = 10  # stories of a partial listing, such as one quiet day: their pages may all be gone

# Reason -> the settings to look at, which are those of the platform's stories or `of` the reference.
SETTINGS: dict[str, str] = {
    Skip.MISSING: "{of}content.url, {of}content.key and the paths that the listing names",
    Skip.EMPTY: "{of}content.url, {of}extract.body and {of}extract.strip",
    Skip.NOT_TEXT: "{of}content.url and the paths that the listing names",
    Skip.NO_BODY: "{of}extract.body",
    Skip.TOO_SHORT: "{of}extract.body and {of}extract.strip",
    Skip.OVER_BUDGET: "the log lines before this one",
    Dead.BAD_ROW: "the listing that [{listing}] names",
    Dead.BAD_ID: "the column id of the listing",
    Dead.BAD_LANGUAGE: "the column language of the listing, and [languages]",
    Dead.BAD_TIME: "the time columns of the listing",
    Dead.BAD_PATH: "the column path of the listing",
    Dead.STORE_ERROR: "{of}content.url and {of}content.endpoint",
    Dead.FORBIDDEN: "{of}content.url and the credentials",
    Dead.CRASHED: "the log lines before this one",
    Dead.QUARANTINED: "the log lines before this one, and `neardup retry KEY`",
}
EMPTY_LISTING = "the listing has no stories; look at source.manifest, or source.backfill_sql for Athena"


def refuse_unreadable(summary: RunSummary, *, whole_listing: bool) -> None:
    """Raise Fatal if the listing is empty or nearly none of its stories could be read.

    Unless the run saw the whole listing, it may be empty, and for FEW stories the Fatal is a warning of the run.  So it
    is if nearly all stories of the whole listing are known: the rest may have been unreadable before.
    """
    counts = summary.counts
    if whole_listing and not counts.listed:
        raise Fatal(EMPTY_LISTING)
    if not nearly_nothing_read(counts):
        return
    why = complaint(counts, of_reference=summary.command == "reference")
    fewest = max(FEW, LEAST_SHARE * counts.listed) if whole_listing else FEW
    if counts.attempted >= fewest or (whole_listing and counts.attempted == counts.listed):
        raise Fatal(why)
    summary.warnings["reading"] = why
    log.warning("no story could be read", why=why)


def nearly_nothing_read(counts: Counts) -> bool:
    """Whether stories had to be read, and less than LEAST_SHARE of them could be."""
    return counts.readable < LEAST_SHARE * counts.attempted


def complaint(counts: Counts, *, of_reference: bool = False) -> str:
    """One line that says what could not be read, of how many, why, with an example and the setting to look at."""
    reasons = Counter({reason: n for reason, n in counts.unread().items() if n})
    [(worst, _), *_] = reasons.most_common(1)
    settings = SETTINGS[worst].format(
        of="reference." if of_reference else "", listing="reference" if of_reference else "source"
    )
    share = f"only {counts.readable:,}" if counts.readable else "none"
    return (
        f"{share} of {counts.attempted:,} {'works' if of_reference else 'stories'} could be read:"
        f" {', '.join(f'{reason} {n:,}' for reason, n in reasons.most_common())}; for example"
        f" {counts.examples[worst]}; look at {settings}"
    )


def keep_examples(counts: Counts, batch: Iterable[Skipped | DeadLettered], location: Callable[[Story], str]) -> None:
    """Keep the first of these stories that could not be read for a reason that has no example yet.

    `location` says where a story's page was looked for.
    """
    for outcome in batch:
        match outcome:
            case Skipped(story, reason) if reason not in READABLE and reason not in counts.examples:
                named = "" if story.title is None else f", “{story.title}”,"
                counts.examples[reason.value] = f"story {story.name or story.id}{named} at {location(story)}"
            case DeadLettered(BadRow(), reason, error) if reason not in counts.examples:
                counts.examples[reason.value] = error
            case DeadLettered(Story() as story, reason, error) if reason not in counts.examples:
                counts.examples[reason.value] = f"story {story.name or story.id}: {error}"
