"""The backends that the contract suite runs against."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.index_under_test import KINDS, Bench


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    fixtures = {"redis": "redis_url", "cluster": "cluster_url"}
    server = request.param.rpartition(" ")[2]
    where = request.getfixturevalue(fixtures[server]) if server in fixtures else ""
    made = Bench(request.param, where, tmp_path)
    yield made
    made.close()
