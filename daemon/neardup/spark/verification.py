"""Verification on executors: the texts are joined to the candidates, and the core's own arithmetic decides."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema

from neardup.config import Config
from neardup.core.fingerprint.version import algorithm
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.publication_order import make_sort_key
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.scores import ComparedPair, assess_all
from neardup.core.verify.spans import measure_similarity
from neardup.core.verify.text import Text
from neardup.core.verify.tiers import COPIED_WORDS, find_tier, list_kinds_of_passages
from neardup.moderation.export.formats import make_schema, type_times
from neardup.moderation.export.tables import WHOLE_PAIRS, export_row
from neardup.records import Assessment, Candidate, Language, PairedStory, Spans, show_id
from neardup.spark.session import Batches, convert_to_microseconds

FACTS = (
    "id", "language", "path", "text_hash", "simhash", "signature", "words", "shingles", "author_id", "title",
    "published_at", "updated_at", "name", "catalogue", "licence",
)  # fmt: skip
BROADCAST_BYTES = 64 << 20  # of the works' texts: the driver and each executor hold them
TEXTS_HELD = 64  # by one task: pairs come sorted by their first story
PAIRS_AT_A_TIME = TEXTS_HELD // 2
NAMES = "story_name", "matched_name"  # by which the outputs show the ids
ONLY_IN_A_LEDGER = (
    "flag_id", "context", "story_known_since", "matched_known_since", "verdict", "moderator", "note", "decided_at",
    "undone_at", "undone_by", "permission_id", "permission_licence", "permission_until",
    "story_serial", "matched_serial",
)  # fmt: skip


def make_verified_schema() -> pa.Schema:
    """The columns of a whole export, then what a ledger holds of a flag beside them.

    `kind` is null for a pair that is no copy.
    """
    further = {
        "joins_clusters": pa.bool_(),
        "hidden": pa.bool_(),
        "story_language": pa.string(),
        "story_words": pa.int64(),
        **dict.fromkeys(NAMES, pa.string()),
    }
    return convert_to_microseconds(
        pa.schema([*make_schema(WHOLE_PAIRS), *(pa.field(name, kind) for name, kind in further.items())])
    )


def verify_pairs(
    pairs: DataFrame,
    stories: DataFrame,
    works: DataFrame | None,
    *,
    common: Mapping[Language, PassageHashes],
    config: Config,
    flagged_at: int,
) -> DataFrame:
    """Candidates (a, b, same_text, by_passages) and stories -> a row for each pair, as `make_verified_schema`.

    `stories` has the columns `reading.READ`.  Only the texts of stories in a pair travel, and not those of pairs with
    the same text.  `works` are the rows of the reference, if there is one: a small catalogue is copied to each
    executor, so that a work with a million copies is not one task's.
    """
    facts = [f.coalesce("title", "page_title").alias(name) if name == "title" else f.col(name) for name in FACTS]
    without_text = stories.select(*facts, f.lit(None).cast("string").alias("text"))
    joined = _join_sides(pairs.where("same_text"), without_text, without_text)
    other = pairs.where("NOT same_text")
    compared = other.select(f.explode(f.array("a", "b")).alias("id")).distinct()
    with_text = stories.join(compared, "id", "left_semi").select(*facts, "text")
    if works is not None:
        earlier = works.select(*facts, "text")
        if _count_text_bytes(works) <= BROADCAST_BYTES:
            earlier = f.broadcast(earlier)
        of_works = f.col("a") < 0  # as the ids of works are
        joined = joined.unionByName(_join_sides(other.where(of_works), earlier, with_text))
        other = other.where(~of_works)
    joined = joined.unionByName(_join_sides(other, with_text, with_text))
    shared = pairs.sparkSession.sparkContext.broadcast(dict(common))
    return joined.mapInArrow(_make_verifier(config, shared, flagged_at), from_arrow_schema(make_verified_schema()))


def _join_sides(pairs: DataFrame, earlier: DataFrame, later: DataFrame) -> DataFrame:
    """Pairs with the columns of both stories, those of `a` from `earlier` and those of `b` from `later`."""
    sides = {
        side: stories.select(*(stories[name].alias(f"{name}_{side}") for name in stories.columns))
        for side, stories in (("a", earlier), ("b", later))
    }
    joined = pairs.join(sides["b"], pairs["b"] == sides["b"]["id_b"]).join(sides["a"], pairs["a"] == sides["a"]["id_a"])
    return joined.drop("a", "b").sortWithinPartitions("id_a")


def _count_text_bytes(works: DataFrame) -> int:
    [row] = works.selectExpr("coalesce(sum(octet_length(text)), 0)").collect()
    return int(row[0])


def _make_verifier(config: Config, shared: Any, flagged_at: int) -> Callable[[Batches], Batches]:
    def verify(batches: Batches) -> Batches:
        schema, common = make_verified_schema(), shared.value
        text_of = lru_cache(TEXTS_HELD)(Text)
        for batch in batches:
            for start in range(0, len(batch), PAIRS_AT_A_TIME):
                rows = batch.slice(start, PAIRS_AT_A_TIME).to_pylist()
                yield pa.RecordBatch.from_pylist(make_rows(rows, text_of, common, config, flagged_at), schema)

    return verify


def make_rows(
    rows: Sequence[dict[str, Any]],
    text_of: Callable[[str], Text],
    common: Mapping[Language, PassageHashes],
    config: Config,
    flagged_at: int,
) -> list[dict[str, Any]]:
    """Verify pairs, by rows with the columns of both stories: a row for each, as `make_verified_schema`."""
    pairs = list[ComparedPair]()
    for row in rows:
        a, b = (None if row[name] is None else text_of(row[name]) for name in ("text_a", "text_b"))
        pairs.append(ComparedPair(Candidate(PairedStory.of_row(row, "_a"), PairedStory.of_row(row, "_b")), a, b))
    assessed = assess_all(pairs, config.detection.of, lambda language: common.get(language, NO_HASHES))
    return [
        {"language": pair.language, "by_passages": row["by_passages"]}
        if assessment is None or assessment.kind is None
        else _make_flag_row(row, pair, assessment, config, flagged_at)
        for row, (pair, *_), assessment in zip(rows, pairs, assessed, strict=True)
    ]


def _make_flag_row(
    row: dict[str, Any], pair: Candidate, assessment: Assessment, config: Config, flagged_at: int
) -> dict[str, Any]:
    """The row of a flag: `matched` is the earlier story, as in the view `pairs` of a ledger."""
    assert assessment.kind is not None
    signals, tier = assessment.signals, find_tier(assessment.kind)
    keys = {side: make_sort_key(row[f"published_at_{side}"], row[f"id_{side}"]) for side in "ab"}
    story, matched = ("b", "a") if keys["a"] < keys["b"] else ("a", "b")
    containment = {"a": signals.containment_a, "b": signals.containment_b}
    spans = {"a": assessment.spans_a, "b": assessment.spans_b}
    shorter, longer = sorted((pair.a.words, pair.b.words))
    exported: dict[str, Any] = dict.fromkeys(ONLY_IN_A_LEDGER) | {
        "kind": assessment.kind,
        "language": pair.language,
        "similarity": measure_similarity(assessment, pair.a.words, pair.b.words),
        "hamming": signals.hamming,
        "jaccard": signals.jaccard,
        "containment": containment[story],
        "matched_containment": containment[matched],
        "longest_run_words": signals.longest_run_words,
        "status": "open",
        "flagged_at": flagged_at,
        "fingerprint_version": algorithm(),
        "estimated": signals.estimated,
        "copied_words": int(signals.extra.get(COPIED_WORDS, 0)),
        "catalogue": row[f"catalogue_{matched}"],
        "licence": row[f"licence_{matched}"],
    }
    for prefix, side in (("story", story), ("matched", matched)):
        exported |= {f"{prefix}_{name}": row[f"{name}_{side}"] for name in FACTS}
        shown = show_id(row[f"id_{side}"], row[f"name_{side}"])
        exported[f"{prefix}_title"] = row[f"title_{side}"] or row[f"path_{side}"] or str(shown)
    result = type_times(export_row(exported, {}))
    is_own = result["same_author"] and tier.reuse_expected
    return result | {
        "by_passages": row["by_passages"] or assessment.kind in list_kinds_of_passages(),
        "joins_clusters": tier.joins_clusters(longer, shorter),
        "hidden": bool(is_own) and config.detection.same_author == "hide",
        "story_language": row[f"language_{story}"],
        "story_words": row[f"words_{story}"],
        "story_name": row[f"name_{story}"],
        "matched_name": row[f"name_{matched}"],
        "signals": json.dumps(dict(signals.extra)) if signals.extra else None,
        "story_spans": _dump_spans(spans[story]),
        "matched_spans": _dump_spans(spans[matched]),
    }


def _dump_spans(spans: Spans) -> str | None:
    """Spans as an export writes them."""
    return json.dumps(spans.tolist()) if len(spans) else None
