"""The plan as facts: by language, in all, and a plain line for each thing that will not go well."""

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from neardup.config import Config
from neardup.index.backends import SIZE_PROJECTIONS
from neardup.index.redis import LAYOUTS
from neardup.insights.plan import times
from neardup.insights.plan.profile import FEW, measured
from neardup.insights.plan.project import SWEEP_MOST, Corpus, days_until_full, index_size, lookup, needed
from neardup.insights.plan.sample import Sample
from neardup.ledger.size import ledger_bytes
from neardup.records import Fingerprinted, Language

SOON = 365  # days; whatever is full before is said


def plan(
    config: Config, sample: Sample | None, counts: Mapping[Language, int], daily: int, memory: int
) -> dict[str, Any]:
    """What `counts` stories take, and `daily` more a day, in so many bytes of memory: as JSON has it."""
    outcomes = sample.outcomes if sample else {}
    profiles = {one: measured(one, outcomes.get(one, [])) for one in counts}
    corpus = Corpus({one: n * profiles[one].readable for one, n in counts.items()}, profiles, config.detection)
    cost = sample.cost if sample else times.PageCost()
    boxes = {layout: needed(corpus, layout) for layout in LAYOUTS}
    facts: dict[str, Any] = {
        "sample": _sampled(sample) if sample else None,
        "languages": {str(one): _of_language(corpus, one, n) for one, n in counts.items()},
        "page": {"fetch_us": cost.fetch, "read_us": cost.read, "wall_us": cost.wall, "bytes": cost.bytes},
        "redis": {
            layout: {
                "grown": index_size(corpus, layout).total,
                "rebuilt": index_size(corpus, layout, grown=False).total,
            }
            for layout in LAYOUTS
        },
        "memory": {"box": memory, **boxes},
        "days_until_full": {layout: days_until_full(corpus, layout, daily, memory) for layout in boxes},
        "daily_stories": daily,
        **_runs(corpus, cost, daily),
    }
    facts["warnings"] = _warnings(config, facts, corpus, sample)
    return _rounded(facts)


def _sampled(sample: Sample) -> dict[str, Any]:
    read = {str(one): sum(isinstance(out, Fingerprinted) for out in outs) for one, outs in sample.outcomes.items()}
    return {"fingerprinted": read, "not_fingerprinted": dict(sample.unread), "bad_rows": sample.bad_rows}


def _of_language(corpus: Corpus, language: Language, listed: int) -> dict[str, Any]:
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
        "skew": {"signatures": profile.sketch_skew, "simhashes": profile.hash_skew},
        "fullest_bucket": profile.fullest * stories,
        "lookup": {
            layout: {tier: asdict(reads) for tier, reads in lookup(corpus, language, layout, stories).items()}
            for layout in LAYOUTS
        },
    }


def _run(
    cost: times.PageCost, stories: Mapping[Language, float], writing: Callable[[Language], float]
) -> dict[str, Any]:
    """A run of `stories` that cost its writer so much each: how long it takes, and what limits it."""
    spent = dict.fromkeys(times.STAGES, 0.0)
    for language, n in stories.items():
        pace = times.pace(cost, writing(language), os.cpu_count() or 1)
        spent[pace.limited_by] += n / pace.rate
    return {"seconds": sum(spent.values()), "limited_by": max(spent, key=lambda stage: spent[stage])}


def _runs(corpus: Corpus, cost: times.PageCost, daily: int) -> dict[str, dict[str, Any]]:
    """A backfill that looks up as it goes, one that builds the index at the end, and a day's run, by index."""

    def beside(name: str, filled: float) -> Callable[[Language], float]:
        def writing(language: Language) -> float:
            tiers = lookup(corpus, language, name, filled * corpus.stories[language]).values()
            numbers, candidates = sum(tier.numbers for tier in tiers), sum(tier.candidates for tier in tiers)
            return times.looking_up(times.INDEX[name], numbers, candidates)

        return writing

    total = sum(corpus.stories.values()) or 1
    day = {language: daily * n / total for language, n in corpus.stories.items()}
    runs: dict[str, dict[str, Any]] = {"backfill": {}, "fresh": {}, "daily": {}}
    for name, index in times.INDEX.items():
        fresh = _run(cost, corpus.stories, lambda _: times.COMMIT)
        fresh["seconds"] += total * index.build / times.MICRO
        runs["fresh"][name] = fresh
        runs["backfill"][name] = _run(cost, corpus.stories, beside(name, 0.5))  # half full on average
        runs["daily"][name] = _run(cost, day, beside(name, 1.0))
    return runs


def _warnings(config: Config, facts: Mapping[str, Any], corpus: Corpus, sample: Sample | None) -> list[str]:
    said = []
    for layout, days in facts["days_until_full"].items():
        wants, box = facts["memory"][layout]["needed"], facts["memory"]["box"]
        if days == 0:
            said.append(f'does not fit with index.layout = "{layout}": needs {gigabytes(wants)} of {gigabytes(box)}')
        elif days is not None and days < SOON:
            said.append(f'the box is full in {days:,.0f} days with index.layout = "{layout}"')
    if (sweep := facts["memory"]["compact"]["sweep"]) > SWEEP_MOST:
        said.append(f"a sweep takes {gigabytes(sweep)}, over {gigabytes(SWEEP_MOST)}")
    over = [
        f"{one} {corpus.profiles[one].fullest * n:,.0f}"
        for one, n in corpus.stories.items()
        if corpus.profiles[one].fullest * n > config.detection.of(one).max_bucket
    ]
    if over:
        said.append(
            f"buckets pass detection.max_bucket, the fullest of {', '.join(over)} stories: text that many pages share? "
            "A lookup reads the last of them only; other bands make up for it"
        )
    if sample is not None:
        counted = facts["sample"]["fingerprinted"]
        few = [f"{one} {counted.get(str(one), 0):,}" for one in corpus.stories if counted.get(str(one), 0) < FEW]
        if few:
            said.append(f"few stories sampled ({', '.join(few)}): their skew is taken as typical, not measured")
        if sample.bad_rows:
            said.append(f"{sample.bad_rows:,} rows of the listing name no story")
        if bad := facts["sample"]["not_fingerprinted"]:
            said.append(f"not fingerprinted, of those sampled: {', '.join(f'{why} {n:,}' for why, n in bad.items())}")
    return said


def gigabytes(size: float) -> str:
    """Bytes, in the unit that a box is sold by."""
    return f"{size / (1 << 30):.2f} GiB" if size >= 1 << 29 else f"{size / (1 << 20):,.1f} MiB"


def _rounded(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Fractions to what the model can tell: four digits, whole numbers from 1,000 on."""
    rounded = dict(facts)
    for name, fact in facts.items():
        if isinstance(fact, dict):
            rounded[name] = _rounded(fact)
        elif isinstance(fact, float):
            rounded[name] = round(fact) if fact >= 1000 else float(f"{fact:.4g}")
    return rounded
