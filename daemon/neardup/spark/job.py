"""The stages of a job in their order; each writes a folder of Parquet, and says what it did and how long it took."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, reduce

from msgspec import Struct
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as f

from neardup.config import Config
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.verify.clusters import Policy
from neardup.moderation.export.tables import MEMBERS, STORIES, WHOLE_PAIRS
from neardup.pipeline.fingerprint_file import TIMES, list_versions, make_schema
from neardup.records import Language, format_count
from neardup.source.documents import Columns
from neardup.spark.candidates import (
    collect_common_hashes,
    find_fingerprint_pairs,
    find_heavy_keys,
    find_passage_pairs,
    find_shared_hashes,
)
from neardup.spark.reading import FINGERPRINTED, READ, Reading, list_configured, list_table, make_reader
from neardup.spark.results import find_clusters, find_copying_stories, list_members, show_ids
from neardup.spark.session import find_path
from neardup.spark.verification import NAMES, verify_pairs

STORIES_PER_TASK = 20_000  # read by one task: losing it costs half a minute of one core
# A task that reads holds whole row groups, compressed: four of Parquet's 128 MiB, of texts, fill a heap of 1 GiB.
WRITTEN = {"compression": "zstd", "parquet.block.size": str(16 << 20)}
TEXT_ROWS, NUMBER_ROWS = 200, 20_000  # in an Arrow batch

Show = Callable[[str], None]


class Input(Struct, frozen=True):
    """A table with a column of texts or pages: its name or path, its columns, and the language of all its texts."""

    name: str
    columns: Columns
    language: Language | None


class Job:
    """One job: `run` writes the folders of `output`, and calls `show` with a line for each stage.

    Without `table` the job compares what the configuration lists.  `keep` says which members of clusters to keep.
    """

    def __init__(
        self,
        spark: SparkSession,
        config: Config,
        output: str,
        table: Input | None,
        show: Show,
        *,
        keep: Policy = "earliest",
    ) -> None:
        self._spark = spark
        self._config = config
        self._output = output.rstrip("/")
        self._table = table
        self._keep = keep
        self._show = show
        self._counts: list[DataFrame] = []
        self._common: dict[Language, PassageHashes] = {}
        self._started_at = time.time_ns() // 1_000_000
        spark.conf.set("spark.sql.adaptive.enabled", "true")
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS")

    def run(self) -> None:
        """Do all stages.  Raises Misuse for a table that cannot be read; a stage that fails raises Spark's error."""
        read = self._read()
        fingerprints = self._make_fingerprints(read)
        self._write_stage("fingerprints", fingerprints.where("id >= 0"))  # without the works of the reference
        pairs = self._write_stage("_work/candidates", self._find_pairs(fingerprints))
        texts = read.where(f"outcome = '{FINGERPRINTED}'")
        with _exchange_rows(self._spark, TEXT_ROWS):
            works = None if self._config.reference is None else self._write_stage("_work/works", texts.where("id < 0"))
            found = verify_pairs(
                pairs, texts, works, common=self._common, config=self._config, flagged_at=self._started_at
            )
            assessed = self._write_stage("_work/assessed", found).where("kind IS NOT NULL")
        clustered = self._write_checkpoint(find_clusters(assessed, self._write_checkpoint), "_work/clustered")
        named = texts.where("name IS NOT NULL").select("id", "name")
        show = partial(show_ids, named=None if named.isEmpty() else named)
        self._write_stage("clusters", show(list_members(clustered, texts, self._keep), MEMBERS))
        flags = self._write_stage("flags", show(_add_clusters(assessed, clustered).drop(*NAMES), WHOLE_PAIRS))
        self._count(flags, "flagged", "kind")
        self._write_stage("stories", show(find_copying_stories(assessed), STORIES))
        self._write_stage("counts", reduce(lambda counts, more: counts.unionByName(more), self._counts).coalesce(1))
        files, work = find_path(self._spark, f"{self._output}/_work")
        files.delete(work, True)

    def _read(self) -> DataFrame:
        """The stage that reads pages: READ, the latest row of each story; others are superseded."""
        spark, config, table = self._spark, self._config, self._table
        tasks = max(1, spark.sparkContext.defaultParallelism)
        with _exchange_rows(spark, TEXT_ROWS):
            if table is None:
                listed = self._write_stage("_work/listing", list_configured(spark, config))
                rows = listed.repartition(max(tasks, -(-listed.count() // STORIES_PER_TASK)))
            else:
                rows = list_table(spark, config, table.name, table.columns, table.language)
            reading = Reading.of(config, tasks, with_bodies=table is not None)
            read = self._write_stage("_work/read", rows.mapInArrow(make_reader(config, reading), READ))
        latest = _choose_latest(read)
        self._count(latest, f.col("outcome"), "reason")
        return latest

    def _make_fingerprints(self, read: DataFrame) -> DataFrame:
        """The columns that `export --fingerprints` writes."""
        version_of = f.create_map(
            *(f.lit(str(x)) for pair in list_versions(self._config.registry).items() for x in pair)
        )
        made = read.where(f"outcome = '{FINGERPRINTED}'").withColumn("version", version_of[f.col("language")])
        for name in TIMES:  # `known_since` is that of a ledger
            time_of = f.timestamp_millis(name) if name in made.columns else f.lit(None).cast("timestamp")
            made = made.withColumn(name, time_of)
        return made.select(make_schema().names)

    def _find_pairs(self, fingerprints: DataFrame) -> DataFrame:
        """The candidates of both tiers, the best `max_matches` of each later story in either."""
        config = self._config
        heavy = self._write_stage("_work/heavy", find_heavy_keys(fingerprints, config))
        shared = self._write_stage("_work/shared", find_shared_hashes(fingerprints, config))
        by_prints = self._write_stage("_work/prints", find_fingerprint_pairs(fingerprints, heavy, config))
        by_passages = self._write_stage("_work/passages", find_passage_pairs(fingerprints, shared, config))
        self._common = collect_common_hashes(shared, config)
        tiers = [
            pairs.withColumn("by_passages", f.lit(by)).withColumn("tier", f.lit(tier))
            for pairs, by, tier in ((by_prints, False, "fingerprints"), (by_passages, True, "passages"))
        ]
        both = tiers[0].unionByName(tiers[1]).withColumn("language", self._name())
        best_first = f.col("rows").desc(), f.col("bits"), f.col("shared").desc(), f.col("a")
        rank = f.row_number().over(Window.partitionBy("b", "by_passages").orderBy(*best_first))
        most_of = f.create_map(
            *(f.lit(x) for name in config.registry for x in (str(name), config.detection.of(name).max_matches))
        )
        ranked = both.where("a IS NOT NULL").withColumn("kept", rank <= most_of[f.col("language")])
        self._count(ranked.where("kept"), "candidates", "tier")
        self._count(ranked.where("NOT kept"), "left_out", "tier")
        self._count(both.where("a IS NULL"), "left_out", "tier", f.sum("left_out"))
        self._count(heavy.withColumn("language", self._name()), "max_bucket_reached")
        self._count(shared.where("id IS NULL").withColumn("language", self._name()), "common_passages")
        return ranked.where("kept")

    def _name(self) -> Column:
        """The name of a language by its number, the column `language`."""
        return f.get(f.array(*(f.lit(str(name)) for name in self._config.registry)), f.col("language"))

    def _count(
        self, frame: DataFrame, what: str | Column, reason: str | None = None, count: Column | None = None
    ) -> None:
        """Count the rows of a frame in the folder `counts`, by language and by a column with the reason.

        `what` is what is counted, or a column that says so.
        """
        named = (
            f.lit(what).alias("what"),
            (f.lit(None).cast("string") if reason is None else f.col(reason)).alias("reason"),
            f.col("language").alias("language"),
        )
        self._counts.append(frame.groupBy(*named).agg((f.count("*") if count is None else count).alias("count")))

    def _write_stage(self, name: str, frame: DataFrame) -> DataFrame:
        """Write a folder, and read it back."""
        began = time.monotonic()
        written = self._write_checkpoint(frame, name)
        rows = written.count()
        self._show(
            f"{name.removeprefix('_work/')}: {format_count(rows, 'row', 'rows')}, {time.monotonic() - began:.1f} s"
        )
        return written

    def _write_checkpoint(self, frame: DataFrame, name: str) -> DataFrame:
        path = f"{self._output}/{name if '/' in name or not name.startswith('edges') else f'_work/{name}'}"
        frame.write.mode("overwrite").options(**WRITTEN).parquet(path)
        return self._spark.read.schema(frame.schema).parquet(path)


@contextmanager
def _exchange_rows(spark: SparkSession, rows: int) -> Iterator[None]:
    """While it lasts, new stages exchange so many rows at a time with Python."""
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    spark.conf.set(key, rows)
    try:
        yield
    finally:
        spark.conf.set(key, NUMBER_ROWS)


def _choose_latest(read: DataFrame) -> DataFrame:
    """Of the rows of one story the latest; the others are skipped as superseded."""
    repeated = read.where("id IS NOT NULL").groupBy("id").count().where("count > 1").select("id")
    if repeated.isEmpty():
        return read
    latest_first = Window.partitionBy("id").orderBy(f.col("updated_at").desc_nulls_last(), f.col("position").desc())
    several = read.join(repeated, "id").withColumn("nth", f.row_number().over(latest_first))
    later = f.col("nth") > 1
    kept = several.withColumn("outcome", f.when(later, "skipped").otherwise(f.col("outcome")))
    kept = kept.withColumn("reason", f.when(later, "superseded").otherwise(f.col("reason"))).drop("nth")
    return read.join(repeated, "id", "left_anti").unionByName(kept)


def _add_clusters(flags: DataFrame, clustered: DataFrame) -> DataFrame:
    """Flags with the cluster that both of their stories are in."""
    columns = flags.columns
    bare = flags.drop("cluster_id", "cluster_size")
    story = clustered.select(f.col("story_id"), "cluster_id", "cluster_size")
    matched = clustered.select(f.col("story_id").alias("matched_id"), f.col("cluster_id").alias("other"))
    joined = bare.join(story, "story_id", "left").join(matched, "matched_id", "left")
    together = f.col("cluster_id") == f.col("other")
    joined = joined.withColumn("cluster_size", f.when(together, f.col("cluster_size")))
    return joined.withColumn("cluster_id", f.when(together, f.col("cluster_id"))).select(columns)
