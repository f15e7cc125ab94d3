"""The options of a run, and when to propose one of them."""

from dataclasses import dataclass

from neardup.pipeline.progress import Progress
from neardup.telemetry.log import log

FRESH_PAYS = 30_000  # stories: see deploy/docs/speed.md


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run.

    - `since`: the time (milliseconds) from which to list; for a daily run, instead of the watermark.
    - `needs_watermark`: refuse a daily run that has neither `since` nor a watermark.
    - `refingerprint_for`: as in `prepare_index`.
    - `fresh`: make no lookups, and build the index at the end.  The ledger records that a sweep is owed, which finds
      the pairs.
    - `dead_letters`: the listing is of dead letters.  Read the stories in quarantine too.
    - `moves_watermark`: the listing is of the platform's stories, all of them or those of a time.
    """

    command: str
    since: int | None = None
    needs_watermark: bool = False
    refingerprint_for: str | None = None
    fresh: bool = False
    dead_letters: bool = False
    moves_watermark: bool = True


class FreshProposal:
    """Proposes `--fresh` once, during a first backfill that is large enough for it to pay."""

    def __init__(self, options: Options) -> None:
        self._is_due = options.command == "backfill" and not options.fresh

    def consider(self, progress: Progress, held_before: int) -> None:
        """Log the proposal if the listing, by its size and the rows so far, has FRESH_PAYS stories or more.

        `held_before` is the number of stories on record when the run began.
        """
        if not self._is_due or not progress.position:
            return
        self._is_due = False
        stories = progress.counts.listed * progress.size // progress.position
        if stories >= FRESH_PAYS and not held_before:
            log.info("a first backfill of this size is faster with --fresh", about=stories, pays_from=FRESH_PAYS)
