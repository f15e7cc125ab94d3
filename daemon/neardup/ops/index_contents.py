"""Compares what an index holds with what the ledger expects, for `neardup doctor`; also beside a run."""

from neardup.index.protocol import BucketStatistics, Completeness, Index
from neardup.ledger import Ledger, changes, inserts, lock, runs
from neardup.pipeline.index_check import SAMPLE, differing_counts

REPAIR = "the next run repairs it, or `neardup reindex` now"


async def difference(index: Index, ledger: Ledger) -> str | None:
    """What the index lacks or has too much, and what to do, in one line; None if it holds what it should.

    Raises Transient, and IndexDamaged for an index that only a rebuild repairs.
    """
    held = await ledger.do(runs.stories_by_language)
    applied, last = (await index.position()).applied, await ledger.do(changes.last_seq)
    if not held:
        return None
    if (behind := _behind(applied, last, lock.holder(ledger.path) is not None)) is not None:
        return behind
    assert applied is not None
    if (lacks := await _lacks(index, ledger, applied)) is not None:
        return lacks
    return await _miscounts(index, ledger, applied)


def _behind(applied: int | None, last: int, running: bool) -> str | None:
    if applied is None:
        why = "a command is filling it" if running else f"it has lost data, or was never filled; {REPAIR}"
        return f"not in step with the ledger: {why}"
    if applied > last:
        return f"at change {applied:,}, which the ledger, at {last:,}, never made; {REPAIR}"
    if applied < last and not running:
        return f"lacks the last {last - applied:,} changes of the ledger; {REPAIR}"
    return None


async def _lacks(index: Index, ledger: Ledger, applied: int) -> str | None:
    """What the index lacks of sampled stories that it had applied, and that no run has edited meanwhile."""
    if not isinstance(index, Completeness):
        return None
    sample = [story for story in await ledger.do(inserts.sample, SAMPLE) if story.number <= applied]
    missing = {story.number: n for story, n in zip(sample, await index.missing(sample), strict=True) if n}
    existing = await ledger.do(inserts.existing, missing)
    lost = [n for number, n in missing.items() if number in existing]
    if not lost:
        return None
    return f"lacks {sum(lost):,} entries of {len(lost):,} of {len(sample):,} sampled stories; {REPAIR}"


async def _miscounts(index: Index, ledger: Ledger, applied: int) -> str | None:
    """The languages whose stories the index miscounts; a run that writes meanwhile hides a difference."""
    if not isinstance(index, BucketStatistics):
        return None
    counted = {str(language): n for language, n in (await index.story_counts()).items()}
    held = await ledger.do(runs.stories_by_language)
    if {applied} != {(await index.position()).applied, await ledger.do(changes.last_seq)}:
        return None
    differing = differing_counts(held, counted)
    if not differing:
        return None
    counts = ", ".join(f"{language} {n:,} instead of {wanted:,}" for language, (wanted, n) in sorted(differing.items()))
    return f"counts other stories than the ledger: {counts}; {REPAIR}"
