"""Prepares the volumes and the bucket of compose.yaml: tokens for Prometheus, and the sample stories in S3.

What is there already stays.  The stand-in for S3 forgets its bucket when it stops; then this fills it again.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from botocore.config import Config
from botocore.exceptions import EndpointConnectionError
from botocore.session import get_session

TOKENS = Path("/var/lib/tokens")
STORIES = Path("/opt/neardup/samples/stories")
BUCKET = "stories"
SECONDS = 60.0  # for the stand-in to start


def make_token(command: str, *options: str) -> None:
    """Make Prometheus a token that may read the metrics of `serve` or `review`."""
    secret = TOKENS / f"prometheus.{command}"
    if not secret.exists():
        program = Path(sys.executable).with_name("neardup")
        arguments = [program, command, "--new-token", "prometheus", *options]
        made = subprocess.run(arguments, check=True, stdout=subprocess.PIPE)  # noqa: S603
        secret.write_bytes(made.stdout.strip())
        secret.chmod(0o400)


def fill_bucket() -> None:
    """Put the sample stories into the bucket."""
    s3 = get_session().create_client("s3", endpoint_url=os.environ["S3_ENDPOINT"], config=Config(connect_timeout=5))
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            s3.create_bucket(Bucket=BUCKET)
            break
        except EndpointConnectionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
    for page in sorted(STORIES.rglob("*.html")):
        s3.put_object(Bucket=BUCKET, Key=str(page.relative_to(STORIES)), Body=page.read_bytes())


make_token("serve")
make_token("review", "--rights", "read")
fill_bucket()
