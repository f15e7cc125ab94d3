"""`neardup import`: stories a second by part, and the peak memory, of synthetic stories as uneven as prose.

    python -m tests.bench.imports FOLDER [--stories 1000000] [--redis LAYOUT]

writes the stories to FOLDER/fingerprints, and imports them into a new deployment in FOLDER.
"""

import json
import resource
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from neardup.core.languages import SHIPPED
from neardup.pipeline.fingerprint_file import list_versions, make_schema
from neardup.records import Fingerprinted
from pyarrow.parquet import ParquetWriter  # type: ignore[import-untyped]

from tests.bench.scale_corpus import Corpus
from tests.support.command import Neardup, embedded
from tests.support.servers import redis_server

HASHES = 78  # of a story, as of 1,000 words
SEED = 2


def write_stories(path: Path, stories: int) -> None:
    """Write synthetic stories to a Parquet file; no two have a passage hash in common."""
    rng, columns = np.random.default_rng(SEED), make_schema()
    with ParquetWriter(path, columns, compression="zstd") as out:
        for page in Corpus("prose").pages(stories):
            out.write_table(pa.Table.from_pylist(_rows(rng, page), columns))


def _rows(rng: np.random.Generator, page: Sequence[Fingerprinted]) -> list[dict[str, object]]:
    version_of = list_versions(SHIPPED)
    steps = rng.integers(1, 2 * ((1 << 32) // HASHES) - 1, (len(page), HASHES)).astype(np.float64)
    places = np.cumsum(steps, axis=1)
    hashes = (places * (((1 << 32) - 1) / (places[:, -1:] + 1))).astype("<u4")
    return [
        {
            "id": fingerprint.story.id,
            "language": fingerprint.story.language,
            "text_hash": fingerprint.fingerprint.text_hash,
            "simhash": fingerprint.fingerprint.simhash,
            "signature": fingerprint.fingerprint.signature,
            "passages": np.unique(row).tobytes(),
            "words": fingerprint.fingerprint.words,
            "shingles": fingerprint.fingerprint.shingles,
            "published_at": fingerprint.story.published_at,
            "updated_at": fingerprint.story.updated_at,
            "etag": fingerprint.etag,
            "version": version_of[fingerprint.story.language],
            "author_id": fingerprint.story.author_id,
            "path": f"{fingerprint.story.id}.html",
            "title": fingerprint.story.title,
        }
        for fingerprint, row in zip(page, hashes, strict=True)
    ]


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--stories", default=1_000_000)
@click.option(
    "--redis", "layout", type=click.Choice(["documented", "compact"]), help="The layout of a Redis.  [SQLite]"
)
def main(folder: Path, stories: int, layout: str | None) -> None:
    """Write the stories if they are not there, and import them."""
    source = folder / "fingerprints" / f"{stories}.parquet"
    if not source.exists():
        source.parent.mkdir(parents=True, exist_ok=True)
        write_stories(source, stories)
    with ExitStack() as stack:
        url = stack.enter_context(redis_server(folder)) if layout else "sqlite:"
        neardup = Neardup(folder, {"PATH": "/usr/bin:/bin"}, is_forked=False)
        for old in folder.glob("neardup.db*"):
            if old.is_dir():
                shutil.rmtree(old)
            else:
                old.unlink()
        named = f'layout = "{layout}"\n' if layout else ""
        neardup.configure(embedded(index=url).replace("[ledger]", f"{named}[ledger]"))
        done = subprocess.run(neardup.command("import", "--json", str(source)), stdout=subprocess.PIPE, check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        facts = {"cpu": used.ru_utime + used.ru_stime, "peak_mib": used.ru_maxrss // 1024}
        click.echo(json.dumps(json.loads(done.stdout) | facts, indent=1))


if __name__ == "__main__":
    main()
