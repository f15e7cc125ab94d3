"""The thresholds of translated and retold pairs, each fitted to the stories of the corpus.

The thresholds are tried on the translated and retold samples, as if they stood among the stories of the corpus.
"""

import csv
import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, closing
from importlib import resources
from typing import NamedTuple

import numpy as np

from neardup.config import Config
from neardup.core.text.chunks import cut_chunks
from neardup.core.text.extraction import Extraction
from neardup.core.text.html import extract_visible_text
from neardup.errors import Misuse
from neardup.insights.tables import Facts, Table
from neardup.ledger import Ledger, files, meaning_flags
from neardup.ledger.lock import only_one
from neardup.meaning import search, vectors
from neardup.meaning.codes import compute_codes, scale_to_unit
from neardup.meaning.margins import (
    LEAST_STORIES,
    UNFITTED,
    ExtremeValues,
    align_with_others,
    compute_margin,
    find_thresholds,
    fit_distribution,
)
from neardup.meaning.search import SAME_TEXT, CentredStory, compare
from neardup.meaning.vectors import Parts, open_parts
from neardup.records import Kind, Language, format_count

SHARES = (0.5, 0.1, 0.01, 0.001, 0.0001)  # of the stories, whose margins the table compares


async def evaluate_meaning(config: Config) -> Facts:
    """Fit the thresholds to the stories whose copies were searched for, keep them with their vectors, and return them.

    A kind with fewer than LEAST_STORIES stories keeps its threshold.  Pairs below the threshold of their kind that have
    no verdict are removed, and stories that reach one are searched for by the next `neardup embed`.  Raises as
    `open_parts` does, Misuse if no kind has enough stories, and Transient while `neardup embed` runs.
    """
    path = files.name_vectors_file(config.ledger.path)
    if config.meaning is None or not path.exists():
        raise Misuse("no story has vectors: set [meaning] and run `neardup embed` first")
    async with AsyncExitStack() as stack:
        stack.enter_context(only_one(path, "embed"))
        parts = await stack.enter_async_context(open_parts(config))
        ledger, held = stack.enter_context(closing(Ledger(config.ledger.path))), parts.vectors
        widest = {kind: await held.do(search.read_widest_margins, kind) for kind in UNFITTED}
        fitted = _fit_distributions(widest)
        before = await held.do(search.read_distributions)
        now = before | fitted
        share = config.meaning.false_alarms
        least_before, least = find_thresholds(before, share), find_thresholds(now, share)
        again = await held.do(search.keep_fits, fitted, least)
        removed = await ledger.do(meaning_flags.remove_below, least)
        samples = await sample_margins(parts)
    return {
        "false_alarms": share,
        "removed": removed,
        "searched_again": again,
        "kinds": [
            {
                "kind": kind,
                "stories": len(widest[kind]),
                "fitted": kind in fitted,
                "threshold_before": least_before[kind],
                "threshold": least[kind],
                **of_kind._asdict(),
            }
            for kind, of_kind in now.items()
        ],
        "samples": [
            {"kind": pair.kind, "a": pair.a, "b": pair.b, "margin": margin, "found": margin >= least[pair.kind]}
            for pair, margin in samples
        ],
        "margins": [row for kind in now for row in _compare_margins(kind, widest[kind], now[kind])],
    }


def _fit_distributions(widest: Mapping[Kind, Sequence[float]]) -> dict[Kind, ExtremeValues]:
    """The distributions of the widest margins of stories, of the kinds that have enough; raises Misuse if none has."""
    fitted = {
        kind: fit_distribution(margins, UNFITTED[kind].shape)
        for kind, margins in widest.items()
        if len(margins) >= LEAST_STORIES
    }
    if not fitted:
        most = max(map(len, widest.values()))
        searched = format_count(most, "story has pairs of a kind", "stories have pairs of a kind")
        raise Misuse(f"{searched}; a fit needs {LEAST_STORIES}")
    return fitted


def _compare_margins(kind: Kind, widest: Sequence[float], expected: ExtremeValues) -> list[Facts]:
    """The margin that each share of the stories exceeds, by the distribution and as measured."""
    return [
        {
            "kind": kind,
            "share": share,
            "expected": expected.find_exceeded(share),
            "measured": float(np.quantile(widest, 1 - share)) if share * len(widest) >= 1 else None,
        }
        for share in SHARES
    ]


def make_meaning_tables(facts: Facts) -> list[Table]:
    """The thresholds, the margins that shares of the stories exceed, and the samples that the thresholds find."""
    found = sum(row["found"] for row in facts["samples"])
    removed = format_count(facts["removed"], "pair below its threshold was", "pairs below their threshold were")
    reach = format_count(facts["searched_again"], "story reaches", "stories reach")
    return [
        Table(
            "Thresholds",
            f"For false alarms of {facts['false_alarms']:g} of the stories, half of them of either kind. A kind that"
            f" fewer than {LEAST_STORIES} stories have pairs of is not fitted: it keeps its threshold."
            f" {removed} removed. {reach} it; the next neardup embed searches for them again.",
            ("kind", "stories", "fitted", "before", "now"),
            [
                [row[name] for name in ("kind", "stories", "fitted", "threshold_before", "threshold")]
                for row in facts["kinds"]
            ],
        ),
        Table(
            "Widest margins of stories",
            "The margin that a share of the stories exceeds, as expected and as measured. Copies widen the latter.",
            ("kind", "share", "expected", "measured"),
            [(row["kind"], f"{row['share']:g}", row["expected"], row["measured"]) for row in facts["margins"]],
        ),
        Table(
            "Recall on the samples",
            f"Had they stood among the stories, the thresholds would find {found} of {len(facts['samples'])} pairs of"
            " samples.",
            ("kind", "stories", "margin", "found"),
            [(row["kind"], f"{row['a']} and {row['b']}", row["margin"], row["found"]) for row in facts["samples"]],
        ),
    ]


# The samples

SAMPLES = resources.files("neardup") / "samples" / "meaning"
STORY = Extraction("article .story")
SAMPLE = 1 << 62  # the id of the other sample, which no story has


class SamplePair(NamedTuple):
    """Two samples that say the same, and the kind of the pair."""

    a: int
    b: int
    kind: Kind


class _Sample(NamedTuple):
    story: CentredStory
    candidates: Mapping[int, CentredStory]


async def sample_margins(parts: Parts) -> list[tuple[SamplePair, float]]:
    """The margin that each pair of samples would have in the corpus."""
    rows = csv.DictReader((SAMPLES / "manifest.csv").read_text(encoding="utf-8").splitlines())
    made = {int(row["id"]): await _sample(parts, row["id"], Language(row["language"])) for row in rows}
    lines = (SAMPLES / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [SamplePair(**json.loads(line)) for line in lines]
    return [(pair, _compute_margin(made[pair.a], made[pair.b])) for pair in pairs]


async def _sample(parts: Parts, story_id: str, language: Language) -> _Sample:
    page = (SAMPLES / "stories" / language / f"{story_id}.html").read_text(encoding="utf-8")
    embedded = await parts.embedder.embed(cut_chunks(extract_visible_text(page, STORY)))
    centring = await parts.vectors.do(vectors.read_centring)
    code = compute_codes(vectors.compute_story_vector(embedded, language, centring)[None])
    [nearest] = await parts.vectors.do(search.find_nearest, code)
    story = CentredStory(language, centring.apply(embedded, language))
    return _Sample(story, await parts.vectors.do(search.read_centred, nearest))


def _compute_margin(a: _Sample, b: _Sample) -> float:
    """The margin of two samples, each beside its candidates and the other; a corpus may hold the samples as well."""
    similarity = float(align_with_others(a.story.chunks, b.story.chunks[None])[0])
    sides = []
    for here, there in ((a, b), (b, a)):
        others = {n: held for n, held in here.candidates.items() if not _is_either(held, a.story, b.story)}
        backgrounds = compare(here.story, others | {SAMPLE: there.story}).backgrounds
        sides.append(backgrounds[there.story.language])
    return compute_margin(similarity, *sides)


def _is_either(held: CentredStory, a: CentredStory, b: CentredStory) -> bool:
    whole = scale_to_unit(np.stack([story.chunks.mean(axis=0) for story in (held, a, b)]))
    return bool((whole[1:] @ whole[0]).max() >= SAME_TEXT)
