"""nginx as a path-style S3 store; serving an object costs little CPU compared with what a flow does with it."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
