"""`neardup audit` on the samples: flagged pairs are found, lost ones are named with their reason, damage is seen."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.support.command import Neardup, embedded
from tests.support.faults.index_damage import DamagedIndex, share_of_buckets
from tests.support.samples import PLANTED

ALL = "all"


def audited(neardup: Neardup, *options: str) -> dict[str, Any]:
    done = neardup("audit", "--json", *options)
    assert done.code == 0, done.err
    return dict(done.facts)


def recall_of(facts: dict[str, Any], tier: str) -> tuple[int, int]:
    [row] = [row for row in facts["recall"] if (row["language"], row["tier"]) == (ALL, tier)]
    return row["found"], row["n"]


def test_lost_pairs_are_named_with_their_reason_and_damage_is_seen(flagged: Neardup) -> None:
    whole = audited(flagged)
    assert (whole["stories"], whole["unreadable"], whole["misses"]) == (61, 0, [])
    assert recall_of(whole, ALL) == (2 * len(PLANTED), 2 * len(PLANTED)), "each pair is that of two sampled stories"
    assert recall_of(whole, "index entries") == (61, 61)
    with closing(sqlite3.connect(flagged.ledger)) as db, db:
        [(a, b), (c, d), (e, f)] = db.execute("SELECT a, b FROM flags WHERE kind = 'exact' LIMIT 3").fetchall()
        db.execute("DELETE FROM flags WHERE (a, b) IN (VALUES (?, ?), (?, ?), (?, ?))", (a, b, c, d, e, f))
        db.execute("INSERT INTO candidates (a, b) VALUES (?, ?)", (a, b))
        db.execute("INSERT INTO suppressed_pairs VALUES (?, ?, 1, 1)", (c, d))
    facts = audited(flagged)
    reasons = {(miss["story_id"], miss["matched_id"]): miss["reason"] for miss in facts["misses"]}
    assert reasons == {
        **dict.fromkeys([(a, b), (b, a)], "it waits for verification"),
        **dict.fromkeys([(c, d), (d, c)], "a verdict suppresses it"),
        **dict.fromkeys([(e, f), (f, e)], "it was not nominated when it was written; `neardup sweep` finds it"),
    }
    found, total = recall_of(facts, ALL)
    assert (found, total) == (2 * len(PLANTED) - 6, 2 * len(PLANTED) - 2), "a verdict is no miss"
    share_of_buckets(0.05)(DamagedIndex("sqlite", flagged.ledger, ""))
    damaged = audited(flagged)
    found, total = recall_of(damaged, "index entries")
    assert found < total == 61, "the loss of a twentieth of the buckets was not seen"
    reason = {(miss["story_id"], miss["matched_id"]): miss["reason"] for miss in damaged["misses"]}[e, f]
    assert reason.startswith(("the index lacks entries", "it was not nominated"))
    status = flagged("status")
    assert f"index entries {found} of 61" in " ".join(status.out.split())


@pytest.mark.parametrize("layout", ["documented", "compact"])
def test_damage_of_redis_is_seen_the_same_night_and_healed_the_next(
    make_neardup: Callable[[str], Neardup], redis_url: str, layout: str
) -> None:
    neardup = make_neardup(embedded(index=redis_url).replace("[ledger]", f'layout = "{layout}"\n[ledger]'))
    assert neardup("backfill").code == 0
    share_of_buckets(0.05)(DamagedIndex(layout, neardup.ledger, redis_url))
    found, total = recall_of(audited(neardup), "index entries")
    assert found < total == 61, "the loss of a twentieth of the keys was not seen"
    assert neardup("daily").code == 0
    assert recall_of(audited(neardup), "index entries") == (61, 61), "the daily run did not heal the index"


def test_options_of_an_audit(flagged: Neardup) -> None:
    few = audited(flagged, "--sample", "5")
    assert few["stories"] == 5
    assert audited(flagged, "--since", "2999-01-01T00:00:00Z")["stories"] == 0
    shown = flagged("audit", "--sample", "5")
    assert shown.code == 0
    assert "Recall" in shown.out
    assert flagged("audit", "--since", "yesterday").code == 2
