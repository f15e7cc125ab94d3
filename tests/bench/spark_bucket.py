"""One bucket of many members in `neardup spark`: seconds, core-seconds and memory of the pair stage, and the cap.

    python -m tests.bench.spark_bucket FOLDER [--members 100000]

All stories have the first band of their signatures in common, and are otherwise as unrelated as those of prose.
"""

import os
import sys
from pathlib import Path

import click
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from neardup.config import Config, Content, Source
from neardup.core.candidates.banding import ROWS_A_BAND
from neardup.spark.candidates import find_fingerprint_pairs, find_heavy_keys
from neardup.spark.session import open_session
from pyarrow import parquet

from tests.bench.spark_job import Meter
from tests.support import synthetic
from tests.support.languages import HINDI

SHARED = 7  # the value of each byte of the band


def write_members(path: Path, members: int) -> None:
    """Write the fingerprints of the stories of one bucket, as far as the pair stage reads them."""
    rng, first = np.random.default_rng(1), 0
    fields = [("id", pa.int64()), ("language", pa.string())]
    fields += [(name, pa.binary()) for name in ("simhash", "signature", "text_hash")]
    with parquet.ParquetWriter(path, schema := pa.schema(fields)) as out:
        for part in synthetic.draw_chunks(rng, synthetic.prose(HINDI), members):
            part.signatures[:, :ROWS_A_BAND] = SHARED
            ids = range(first, first := first + len(part))
            columns = [ids, [HINDI] * len(part)]
            columns += [[row.tobytes() for row in rows] for rows in (part.simhashes, part.signatures)]
            columns.append([n.to_bytes(16, "big") for n in ids])
            out.write_table(pa.Table.from_arrays([pa.array(column) for column in columns], schema=schema))


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--members", default=100_000)
@click.option("--master", default="local[2]")
def main(folder: Path, members: int, master: str) -> None:
    """Write the stories, and look for pairs among them."""
    folder.mkdir(parents=True, exist_ok=True)
    write_members(path := folder / f"bucket_{members}.parquet", members)
    config = Config(source=Source(kind="scan"), content=Content(url="file:/"))
    os.environ["SPARK_LOCAL_DIRS"] = str(folder / "spark")
    with open_session(master) as spark, Meter(members) as meter:
        prints = spark.read.parquet(str(path))
        heavy = find_heavy_keys(prints, config).cache()
        for row in heavy.collect():
            meter.show(f"a heavy key: {row['members']:,} members, in parts of {row['max_bucket']:,}")
        pairs = find_fingerprint_pairs(prints, heavy, config)
        meter.show(f"pairs: {pairs.where('a IS NOT NULL').count():,}")


if __name__ == "__main__":
    sys.exit(main())
