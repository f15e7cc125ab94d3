"""The rows of the samples' manifest, and the copies planted among the samples."""

import csv
import json

from tests.support.command import Neardup
from tests.support.paths import SAMPLES

TRUTH = [json.loads(line) for line in (SAMPLES / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
ROWS = list(csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines()))
PLANTED = {(pair["a"], pair["b"], pair["kind"]) for pair in TRUTH}


def kinds(neardup: Neardup) -> set[tuple[int, int, str]]:
    """The open flags as (lower id, higher id, kind)."""
    return {(min(a, b), max(a, b), kind) for a, b, kind, _ in neardup.flagged_pairs()}
