"""The bucket join: all pairs of stories that share a bucket, each pair once.  The inner loop of a sweep.

Keys and buckets.  A key is two bands (first, second) in ascending order, or one band.  The stories with equal values
in the bands of a key form a bucket, and every two members of a bucket are a candidate pair.

Join.  The caller sorts the stories by the first band of a key, so that a bucket is a part of a *run* of equal values.
Each run is joined on the second band by a hash join: a member is compared with the chain of earlier members that have
its value, and then put at the head of that chain.  The table of heads fits a processor's cache.  Under a key of
one band, the whole run is one chain.

Each pair once.  A pair that shares k bands shares k(k - 1) / 2 buckets.  It is found in the first of its keys (in
lexicographic order) that has a light value: such a bucket is never truncated (see heavy_buckets).  If all shared
values are heavy, it is found in the first key whose truncated bucket still compares it.  So a pair's key follows from
the values alone, and found pairs need not be remembered.

Skipping.  In a template copied a thousand times every pair shares nearly every bucket, and rejecting it there again
and again would cost most of the time.  So the caller orders each run by the *outside band*, the first band that is
not the key's first.  Members with equal values in it, which an earlier key has compared, are adjacent in a chain, and
a member enters its chain behind them, by `skips`.

Truncation.  A bucket of more than max_bucket members is truncated to its first max_bucket by position.  A forward
pass chains only these and compares each member with those chained before it; a backward pass compares the excluded
members with those that the forward pass chained after them.
"""

import numpy as np

from neardup.core.candidates.heavy_buckets import BandValues, Positions, truncation_limit
from neardup.core.candidates.join_buffers import (
    BACKWARD,
    END_OF_CHAIN,
    HAS_TRUNCATED,
    HASH_SLOTS,
    NEXT_MEMBER,
    PAIRS,
    RUN,
    RUN_IS_PREPARED,
    SECOND_BAND,
    STEPS,
    TRUNCATED,
    JoinBuffers,
    Keys,
    Runs,
    Stories,
)
from neardup.core.jit import compiled, inlined

MAX_STEPS = 1 << 24  # before the join pauses: about a tenth of a second


@compiled
def join_buckets(stories: Stories, runs: Runs, keys: Keys, buffers: JoinBuffers) -> None:
    """Find pairs until all runs are joined, a bucket is truncated, MAX_STEPS are made, or the output buffer is full.

    The join is complete when cursor[RUN] is the number of runs.  Before it is resumed, the buckets it truncated must be
    added to `buffers.truncations`.
    """
    cursor, max_bucket = buffers.cursor, keys.rules.max_bucket
    cursor[PAIRS] = cursor[TRUNCATED] = cursor[STEPS] = 0
    while cursor[RUN] < len(runs.edges) - 1:
        run = runs.members[runs.edges[cursor[RUN]] : runs.edges[cursor[RUN] + 1]]
        if not cursor[RUN_IS_PREPARED]:
            second = cursor[SECOND_BAND]
            for n in range(len(run)):
                buffers.values[n] = 0 if second == keys.first_band else stories.band_values[run[n], second]
                buffers.is_chained[n] = True
            cursor[RUN_IS_PREPARED] = 1
            cursor[TRUNCATED] = _truncate_buckets(run, max_bucket, buffers) if len(run) > max_bucket else 0
            cursor[HAS_TRUNCATED] = cursor[TRUNCATED]
            if cursor[TRUNCATED]:
                return
        if len(run) > max_bucket:
            _join_heavy_run(stories, run, keys, buffers)
        else:
            _join_run(stories, run, keys, buffers, False)
        if cursor[NEXT_MEMBER] == len(run):
            _finish_pass(len(run), keys, buffers)
        if cursor[STEPS] > MAX_STEPS or cursor[PAIRS] + max_bucket > len(buffers.left):
            return


@compiled
def _finish_pass(members: int, keys: Keys, buffers: JoinBuffers) -> None:
    """Empty the chains, and move to the run's backward pass, its next second band, or the next run."""
    cursor = buffers.cursor
    for n in range(members):
        buffers.heads[buffers.values[n]] = END_OF_CHAIN
    cursor[NEXT_MEMBER] = 0
    cursor[BACKWARD] = cursor[HAS_TRUNCATED] and not cursor[BACKWARD]
    if not cursor[BACKWARD]:
        cursor[RUN_IS_PREPARED] = 0
        cursor[SECOND_BAND] += 1
        if cursor[SECOND_BAND] == keys.stop:
            cursor[SECOND_BAND] = keys.start
            cursor[RUN] += 1


@inlined  # called for each second band of each run: a call would cost as much as the work
def _join_run(stories: Stories, run: Positions, keys: Keys, buffers: JoinBuffers, is_heavy: bool) -> None:
    """Compare each member of a run with its chain, from NEXT_MEMBER on, and chain it; `is_heavy` if the run is.

    In the backward pass, only the members that are not chained are compared.
    """
    band_values, fingerprints, rules = stories.band_values, stories.fingerprints, keys.rules
    second, backward = buffers.cursor[SECOND_BAND], buffers.cursor[BACKWARD]
    pairs, steps = buffers.cursor[PAIRS], buffers.cursor[STEPS]
    outside, single_band = 0 if keys.first_band else 1, keys.start == keys.first_band
    all_heavy, ignored = False, 1 << keys.first_band
    n = buffers.cursor[NEXT_MEMBER]
    while n < len(run) and steps <= MAX_STEPS and pairs + rules.max_bucket <= len(buffers.left):
        member = len(run) - 1 - n if backward else n
        other = skip = head = buffers.heads[buffers.values[member]]
        if head != END_OF_CHAIN:
            if is_heavy or single_band:
                all_heavy, ignored = _heavy_key(stories, run[member], keys, buffers, is_heavy)
            if outside < second and band_values[run[member], outside] == band_values[run[head], outside]:
                skip = buffers.skips[head]
                if not ignored >> outside & 1:
                    other = skip
        if buffers.is_chained[member]:
            buffers.links[member] = head
            buffers.skips[member] = skip
            buffers.heads[buffers.values[member]] = member
            if backward:
                other = END_OF_CHAIN
        while other != END_OF_CHAIN:
            a, b = run[member], run[other]
            if (
                not _share_earlier_band(band_values, a, b, ignored, second)
                and _equal_columns(fingerprints, a, b) >= rules.min_bytes
                and _equal_columns(band_values, a, b) >= rules.min_bands
                and not (all_heavy and _belongs_to_other_key(stories, a, b, keys, buffers))
            ):
                buffers.left[pairs] = min(a, b)
                buffers.right[pairs] = max(a, b)
                pairs += 1
            steps += 1
            other = buffers.links[other]
        steps += 1
        n += 1
    buffers.cursor[NEXT_MEMBER], buffers.cursor[PAIRS], buffers.cursor[STEPS] = n, pairs, steps


@compiled  # a function of its own: as a branch of `join_buckets` it makes short runs several times slower
def _join_heavy_run(stories: Stories, run: Positions, keys: Keys, buffers: JoinBuffers) -> None:
    _join_run(stories, run, keys, buffers, True)


@compiled
def _heavy_key(stories: Stories, story: int, keys: Keys, buffers: JoinBuffers, is_heavy: bool) -> tuple[bool, int]:
    """Whether all values of a story's key are heavy, and a bit mask of the bands to ignore in `_share_earlier_band`.

    A pair of the bucket that shares a band before the second one belongs to another key, unless the band is ignored.
    """
    heavy, first, second = int(np.int64(stories.heavy[story])), keys.first_band, buffers.cursor[SECOND_BAND]
    single_band = keys.start == first
    if not (is_heavy and heavy >> second & 1):
        return False, heavy if single_band else heavy & -(1 << first)
    ignored, own_limit = heavy, truncation_limit(stories.band_values, story, first, second, buffers.truncations)
    for band in range(second):
        if heavy >> band & 1 and band != first:
            low, high = (band, band) if single_band else (min(band, first), max(band, first))
            limit = truncation_limit(stories.band_values, story, low, high, buffers.truncations)
            if story < limit or own_limit <= limit:  # the earlier key compares the story with the whole chain
                ignored &= ~(1 << band)
    return True, ignored


@compiled
def _share_earlier_band(band_values: BandValues, a: int, b: int, ignored: int, second: int) -> bool:
    """Whether two stories share a band before the second one, other than the ignored ones."""
    band = 0
    while band < second and (ignored >> band & 1 or band_values[a, band] != band_values[b, band]):
        band += 1
    return band < second


@compiled
def _equal_columns(table: BandValues, a: int, b: int) -> np.uint8:
    """The number of columns in which rows a and b are equal."""
    equal = np.uint8(0)
    for column in range(table.shape[1]):
        equal += np.uint8(table[a, column] == table[b, column])
    return equal


@compiled
def _belongs_to_other_key(stories: Stories, a: int, b: int, keys: Keys, buffers: JoinBuffers) -> bool:
    """Whether two stories, in one bucket of heavy values, share a light value too, or an earlier key compares them."""
    band_values, single_band = stories.band_values, keys.start == keys.first_band
    for band in range(band_values.shape[1]):
        if band_values[a, band] == band_values[b, band] and not stories.heavy[a] >> np.uint32(band) & np.uint32(1):
            return True
    for first in range(keys.first_band + 1):
        if band_values[a, first] == band_values[b, first]:
            for second in range(
                first if single_band else first + 1, first + 1 if single_band else band_values.shape[1]
            ):
                if first == keys.first_band and second == buffers.cursor[SECOND_BAND]:
                    return False
                is_shared = band_values[a, second] == band_values[b, second]
                if is_shared and min(a, b) < truncation_limit(band_values, a, first, second, buffers.truncations):
                    return True
    return False


@compiled
def _truncate_buckets(run: Positions, max_bucket: int, buffers: JoinBuffers) -> int:
    """Truncate the buckets of a run that exceed `max_bucket`; returns their number."""
    values = buffers.values[: len(run)]
    sizes = np.bincount(values, minlength=HASH_SLOTS)
    truncated = 0
    for n in range(len(run)):
        size = sizes[values[n]]
        if size > max_bucket:
            bucket = np.flatnonzero(values == values[n])
            limit = np.sort(run[bucket])[max_bucket]
            for member in bucket:
                buffers.is_chained[member] = run[member] < limit
            sizes[values[n]] = 0
            buffers.truncated[truncated] = run[n], buffers.cursor[SECOND_BAND], size, limit
            truncated += 1
    return truncated
