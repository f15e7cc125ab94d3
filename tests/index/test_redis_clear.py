"""A clear deletes all keys of the index, of either layout, and no others; an interrupted clear is started again."""

from pathlib import Path

import pytest
import redis
from neardup.core.languages import LANGUAGES
from neardup.index.protocol import IndexPosition
from neardup.index.redis import client as redis_client
from neardup.records import BandedFingerprint, Change

from tests.support.index_under_test import Bench, insert
from tests.support.languages import ODIA


def test_the_other_layout_is_noticed_and_cleared(redis_url: str, tmp_path: Path) -> None:
    documented, compact = (Bench(kind, redis_url, tmp_path) for kind in ("redis", "compact redis"))
    for mine, other in ((compact, documented), (documented, compact)):
        mine.clear()
        mine.apply(Change(1, 7, None, BandedFingerprint(ODIA, bytes(16), bytes(64)), 1), applied=1)
        found = other.read_position()
        assert found.applied is None and found.version is not None and "index.layout" in found.version
    documented.clear()
    with redis.Redis.from_url(redis_url) as client:
        assert set(client.keys()) == {b"neardup:ledger", b"neardup:version", b"neardup:bands"}
    documented.close()
    compact.close()


@pytest.mark.parametrize("kind", ["redis", "compact redis"])
@pytest.mark.parametrize("step", ["scan_iter", "exchange"])
def test_an_interrupted_clear_leaves_an_index_without_a_version(
    kind: str, step: str, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(kind, redis_url, tmp_path)
    bench.apply(insert(1, bytes(16)), applied=1)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    messages = bench.index._server.clients.messages  # type: ignore[attr-defined]
    monkeypatch.setattr(messages if step == "scan_iter" else redis_client, step, killed)
    with pytest.raises(KeyboardInterrupt):
        bench.clear()
    monkeypatch.undo()
    position = bench.read_position()
    assert (position.version, position.applied) == (None, None), "the index would be refused, and not rebuilt"
    bench.clear()
    assert bench.read_position() == IndexPosition("ledger-1", "version-1", None)
    bench.close()


def test_a_clear_deletes_only_keys_of_the_index(redis_url: str, tmp_path: Path) -> None:
    bench = Bench("redis", redis_url, tmp_path)
    foreign = {b"HINDI:orders", b"sketch:HINDI:0:logo", b"sketch:DUTCH:0:0000", b"HINDI:0:0000:0000"}
    with redis.Redis.from_url(redis_url) as client:
        for key in foreign:
            client.set(key, "foreign")
        for n, language in enumerate(LANGUAGES):
            bench.apply(
                Change(n + 1, n, None, BandedFingerprint(language, bytes(range(16)), bytes(range(64))), n),
                applied=n + 1,
            )
        bench.clear()
        assert set(client.keys()) == foreign | {b"neardup:ledger", b"neardup:version", b"neardup:bands"}
    bench.close()
