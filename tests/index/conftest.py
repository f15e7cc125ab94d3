"""The backends that the contract suite runs against."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.index_under_test import KINDS, Bench
from tests.support.servers import PROGRAMS


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    server = request.param.rpartition(" ")[2]
    where = request.getfixturevalue("cluster_url") if server == "cluster" else ""
    if server in PROGRAMS:
        where = request.getfixturevalue("empty_server")(server)
    made = Bench(request.param, where, tmp_path)
    yield made
    made.close()
