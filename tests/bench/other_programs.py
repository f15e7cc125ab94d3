"""Other programs of the same design, which are measured beside neardup: they make SimHashes only, and keep no ledger.

They take `-endpoint -redis -n -mode -id-base -obj-base -obj-count`, with `-spread` in daily runs, and print `wall_s=
cpu_us_per_story=`.  The sources of the Go program are a folder whose `build.sh FILE` builds it; it also takes `-style`.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from msgspec import Struct, field

from tests.bench.pages import FIRST_ID
from tests.bench.report import MICRO
from tests.support.resource_meter import Measured
from tests.support.servers import free_port

CONFIG = """
worker_processes 1; daemon off; pid {work}/nginx.pid; error_log {work}/nginx.err;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; keepalive_requests 100000000; etag on; types {{ text/html html; }}
  client_body_temp_path {work}/body; proxy_temp_path {work}/proxy; fastcgi_temp_path {work}/fastcgi;
  uwsgi_temp_path {work}/uwsgi; scgi_temp_path {work}/scgi;
  server {{ listen 127.0.0.1:{port}; location /{bucket}/ {{ alias {folder}/; }} }}
}}
"""


@contextmanager
def nginx(folder: Path, bucket: str, work: Path) -> Iterator[tuple[str, int]]:
    """Serve `folder` as `bucket`; yields the endpoint and nginx's process id.  nginx keeps its own files in `work`."""
    work.mkdir(exist_ok=True)
    port = free_port()
    config = work / "nginx.conf"
    config.write_text(CONFIG.format(work=work, port=port, bucket=bucket, folder=folder), encoding="ascii")
    with subprocess.Popen(["nginx", "-e", f"{work}/nginx.err", "-c", str(config)]) as process:
        try:
            yield f"http://127.0.0.1:{port}", process.pid
        finally:
            process.terminate()


go_option = click.option(
    "--go",
    "go_sources",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of the sources of the Go program.",
)


class Program(Struct, frozen=True):
    """A command line, and variables of its environment."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def go_programs(sources: Path | None, folder: Path) -> dict[str, Program]:
    """Build the Go program in `folder`: its plain and its tuned form.  None, and a line that says why, without Go."""
    if sources is None or shutil.which("go") is None:
        why = "Go is not installed" if sources else "--go names no sources"
        click.echo(f"the Go program is left out: {why}", err=True)
        return {}
    program = str(folder / "go_program")
    built = subprocess.run(
        [sources / "build.sh", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if built.returncode:
        raise click.ClickException(f"{sources}: the Go program cannot be built: {built.stdout}")
    return {"Go, plain": Program([program, "-style", "plain"], {"GOGC": "100"}), "Go, tuned": Program([program])}


def run_program(program: Program, stories: int, mode: str, *, endpoint: str, redis: str, pages: int) -> Measured:
    """Run a program on the first `stories` of so many pages; returns the figures that it prints.

    Its own figure for peak memory (ru_maxrss) is left out: that survives exec, so it may be that of this process.
    """
    options = {"endpoint": endpoint, "redis": redis, "n": stories, "id-base": FIRST_ID}
    options |= {"mode": mode, "obj-base": FIRST_ID, "obj-count": pages}
    arguments = [word for name, value in options.items() for word in (f"-{name}", str(value))]
    env = os.environ | program.environment
    command = [*program.command, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=env, check=True)
    figures = dict(re.findall(r"(\w+)=(\S+)", done.stdout))
    cpu = float(figures["cpu_us_per_story"]) * stories / MICRO
    return Measured(stories, 0, float(figures["wall_s"]), cpu)
