"""The projection as one object: by language, in total, and a warning for each problem to expect."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from neardup.config import Config
from neardup.index.redis import LAYOUTS
from neardup.index.size import SIZE_PROJECTIONS, valkey_bytes
from neardup.insights.plan import times
from neardup.insights.plan.passages import project_passages
from neardup.insights.plan.profile import FEW, measured
from neardup.insights.plan.project import (
    SWEEP_MOST,
    Corpus,
    days_until_full,
    index_size,
    memory_needed,
    reads_per_lookup,
    title_index_bytes,
)
from neardup.insights.plan.sample import Sample
from neardup.ledger.size import ledger_bytes
from neardup.records import Fingerprinted, Language

SOON = 365  # days; a box that is full earlier gets a warning


def plan(
    config: Config, sample: Sample | None, counts: Mapping[Language, int], daily: int, memory: int
) -> dict[str, Any]:
    """Project what `counts` stories need, and `daily` more each day, on a box with `memory` bytes: the JSON object."""
    outcomes = sample.outcomes if sample else {}
    profiles = {one: measured(one, outcomes.get(one, [])) for one in counts}
    corpus = Corpus({one: n * profiles[one].readable for one, n in counts.items()}, profiles, config.detection)
    cost = sample.cost if sample else times.PageCost()
    boxes = {layout: memory_needed(corpus, layout) for layout in LAYOUTS}
    facts: dict[str, Any] = {
        "sample": _sample_counts(sample) if sample else None,
        "languages": {str(one): _project_language(corpus, one, n) for one, n in counts.items()},
        "page": {"fetch_us": cost.fetch, "read_us": cost.read, "wall_us": cost.wall, "bytes": cost.bytes},
        **_servers(corpus),
        "memory": {"box": memory, **boxes},
        "passages": asdict(project_passages(corpus, daily)),
        "title_index_bytes": title_index_bytes(corpus),
        "days_until_full": {layout: days_until_full(corpus, layout, daily, memory) for layout in boxes},
        "daily_stories": daily,
        **_runs(corpus, cost, daily),
    }
    facts["warnings"] = _warnings(config, facts, corpus, sample)
    return _rounded(facts)


def _servers(corpus: Corpus) -> dict[str, Any]:
    """The bytes of the index in Redis and in Valkey, by layout: if it grew story by story, and if it was rebuilt."""
    sizes = {
        layout: {state: index_size(corpus, layout, grown=state == "grown") for state in ("grown", "rebuilt")}
        for layout in LAYOUTS
    }
    return {
        "redis": {layout: {state: size.total for state, size in of.items()} for layout, of in sizes.items()},
        "valkey": {
            layout: {state: valkey_bytes(size, layout, grown=state == "grown") for state, size in of.items()}
            for layout, of in sizes.items()
        },
    }


def _sample_counts(sample: Sample) -> dict[str, Any]:
    read = {str(one): sum(isinstance(out, Fingerprinted) for out in outs) for one, outs in sample.outcomes.items()}
    return {"fingerprinted": read, "not_fingerprinted": dict(sample.unread), "bad_rows": sample.bad_rows}


def _project_language(corpus: Corpus, language: Language, listed: int) -> dict[str, Any]:
    stories, profile = corpus.stories[language], corpus.profiles[language]
    only = Corpus({language: stories}, corpus.profiles, corpus.detection)
    tiers = {
        f"{backend}_bytes": {tier: size.bytes for tier, size in index_size(only, backend).tiers[language].items()}
        for backend in SIZE_PROJECTIONS
    }
    return {
        "listed": listed,
        "stories": stories,
        **tiers,
        "ledger_bytes": ledger_bytes(stories, profile.signed, profile.row),
        "skew": {"signatures": profile.signature_skew, "simhashes": profile.simhash_skew},
        "fullest_bucket": profile.fullest * stories,
        "lookup": {
            layout: {tier: asdict(reads) for tier, reads in reads_per_lookup(corpus, language, layout, stories).items()}
            for layout in LAYOUTS
        },
    }


def _run(
    cost: times.PageCost, stories: Mapping[Language, float], writing: Callable[[Language], float]
) -> dict[str, Any]:
    """Project a run: its duration, and the stage that limits it.  `writing` is the writer's microseconds a story."""
    seconds = dict.fromkeys(times.STAGES, 0.0)
    for language, n in stories.items():
        pace = times.pace(cost, writing(language), os.cpu_count() or 1)
        seconds[pace.limited_by] += n / pace.rate
    return {"seconds": sum(seconds.values()), "limited_by": max(seconds, key=lambda stage: seconds[stage])}


def _runs(corpus: Corpus, cost: times.PageCost, daily: int) -> dict[str, dict[str, Any]]:
    """Project by index a backfill, a backfill --fresh (without its sweep), and the daily run of `daily` stories."""

    def writer_cost(name: str, filled: float) -> Callable[[Language], float]:
        """The writer's cost of a story by language, with an index that holds the share `filled` of the corpus."""

        def cost_of(language: Language) -> float:
            tiers = reads_per_lookup(corpus, language, name, filled * corpus.stories[language]).values()
            numbers, candidates = sum(tier.numbers for tier in tiers), sum(tier.candidates for tier in tiers)
            return times.writer_cost(times.INDEX[name], numbers, candidates)

        return cost_of

    total = sum(corpus.stories.values()) or 1
    day = {language: daily * n / total for language, n in corpus.stories.items()}
    runs: dict[str, dict[str, Any]] = {"backfill": {}, "fresh": {}, "daily": {}}
    for name, index in times.INDEX.items():
        fresh = _run(cost, corpus.stories, lambda _: times.COMMIT)
        fresh["seconds"] += total * index.build / times.MICRO
        runs["fresh"][name] = fresh
        runs["backfill"][name] = _run(cost, corpus.stories, writer_cost(name, 0.5))  # half full on average
        runs["daily"][name] = _run(cost, day, writer_cost(name, 1.0))
    return runs


def _warnings(config: Config, facts: Mapping[str, Any], corpus: Corpus, sample: Sample | None) -> list[str]:
    warnings: list[str] = []
    for layout, days in facts["days_until_full"].items():
        required, box = facts["memory"][layout]["needed"], facts["memory"]["box"]
        if days == 0:
            warnings.append(
                f'does not fit with index.layout = "{layout}": needs {gigabytes(required)} of {gigabytes(box)}'
            )
        elif days is not None and days < SOON:
            warnings.append(f'the box is full in {days:,.0f} days with index.layout = "{layout}"')
    if (sweep := facts["memory"]["compact"]["sweep"]) > SWEEP_MOST:
        warnings.append(f"a sweep takes {gigabytes(sweep)} of memory, more than {gigabytes(SWEEP_MOST)}")
    overfull = [
        f"{one} {corpus.profiles[one].fullest * n:,.0f}"
        for one, n in corpus.stories.items()
        if corpus.profiles[one].fullest * n > config.detection.of(one).max_bucket
    ]
    if overfull:
        warnings.append(
            f"some buckets will exceed detection.max_bucket; the largest have {', '.join(overfull)} stories. Look for "
            "text that many pages share. A lookup reads only the latest stories of such a bucket"
        )
    if sample is not None:
        counted = facts["sample"]["fingerprinted"]
        few = [f"{one} {counted.get(str(one), 0):,}" for one in corpus.stories if counted.get(str(one), 0) < FEW]
        if few:
            warnings.append(f"few stories sampled ({', '.join(few)}): their skew is assumed to be typical")
        if sample.bad_rows:
            warnings.append(f"{sample.bad_rows:,} rows of the listing name no story")
        if bad := facts["sample"]["not_fingerprinted"]:
            warnings.append(f"sampled but not fingerprinted: {', '.join(f'{why} {n:,}' for why, n in bad.items())}")
    return warnings


def gigabytes(size: float) -> str:
    """Format bytes in GiB, or in MiB below half a GiB."""
    return f"{size / (1 << 30):.2f} GiB" if size >= 1 << 29 else f"{size / (1 << 20):,.1f} MiB"


def _rounded(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Round to the precision of the model: four digits, and whole numbers from 1,000."""
    rounded = dict(facts)
    for name, fact in facts.items():
        if isinstance(fact, dict):
            rounded[name] = _rounded(fact)
        elif isinstance(fact, float):
            rounded[name] = round(fact) if fact >= 1000 else float(f"{fact:.4g}")
    return rounded
