"""A Redis holds the documented keys and nothing else of ours, and one that will not do is refused in a line."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis
import trustme

from daemon.errors import Fatal, Misuse, Transient
from daemon.index import Mark
from daemon.index.redis import open_redis
from daemon.records import Language
from tests.contract.test_index import Bench, insert
from tests.servers import free_port, redis_server


@pytest.fixture
def bench(redis_url: str, tmp_path: Path) -> Iterator[Bench]:
    made = Bench("redis", redis_url, tmp_path)
    yield made
    made.close()


def test_the_documented_keys(bench: Bench, redis_url: str) -> None:
    value = bytes.fromhex("a8d3000102030405060708090a0b0c0d")
    bench.apply(insert(42, value), applied=9)
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.smembers("HINDI:0:A8D3") == {"42"}
        assert client.smembers("HINDI:7:0C0D") == {"42"}
        assert client.hget("simhashes:HINDI", "42") == value.hex()
        assert client.get("neardup:applied") == "9"
        assert client.object("encoding", "HINDI:0:A8D3") == "intset"
        assert client.dbsize() == 8 + 1 + 3, client.keys()


def test_a_clear_spares_the_keys_of_others(bench: Bench, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set("HINDI:orders", "theirs")
        bench.clear()
        assert client.get("HINDI:orders") == b"theirs"


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        (["--maxmemory-policy", "allkeys-lru"], Fatal, "maxmemory-policy noeviction"),
        (["--requirepass", "secret"], Fatal, "refuses"),
    ],
)
def test_a_redis_that_will_not_do_is_refused(
    tmp_path: Path, options: list[str], error: type[Exception], word: str
) -> None:
    with redis_server(tmp_path, *options) as url, pytest.raises(error, match=word):
        asyncio.run(open_redis(url, dict.fromkeys(Language, 3)))


def test_a_password_in_the_url_opens(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--requirepass", "secret") as url:

        async def open_and_close() -> None:
            await (await open_redis(url.replace("unix://", "unix://:secret@"), dict.fromkeys(Language, 3))).close()

        asyncio.run(open_and_close())


def test_tls_with_a_user_and_a_password(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    port = free_port()
    options = ["--tls-port", str(port), "--tls-auth-clients", "no", "--tls-ca-cert-file", "ca.pem"]
    options += ["--tls-cert-file", "server.pem", "--tls-key-file", "server.pem"]
    options += ["--user", *["neardup", "on", ">secret", "~*", "+@all"]]

    async def mark(url: str) -> Mark:
        index = await open_redis(url, dict.fromkeys(Language, 3))
        try:
            await index.clear("mine", "v")
            return await index.mark()
        finally:
            await index.close()

    with redis_server(tmp_path, *options):
        url = f"rediss://neardup:secret@localhost:{port}/0?ssl_ca_certs={tmp_path}/ca.pem"
        assert asyncio.run(mark(url)).ledger_id == "mine"
        with pytest.raises(Fatal, match="refuses") as refused:
            asyncio.run(mark(url.replace("secret", "wrong-password")))
        assert "wrong-password" not in str(refused.value), "a secret must not be told"
        with pytest.raises(Transient, match="certificate"):
            asyncio.run(mark(url.partition("?")[0]))


def test_a_redis_that_is_away_may_come_back() -> None:
    with pytest.raises(Transient, match="does not answer"):
        asyncio.run(open_redis(f"redis://127.0.0.1:{free_port()}", dict.fromkeys(Language, 3)))


def test_a_small_intset_limit_is_trouble(tmp_path: Path) -> None:
    async def ask(url: str) -> str | None:
        index = await open_redis(url, dict.fromkeys(Language, 3))
        try:
            return await index.trouble()
        finally:
            await index.close()

    with redis_server(tmp_path) as url:
        assert "set-max-intset-entries" in (asyncio.run(ask(url)) or "")
        with suppress(Exception), redis.Redis.from_url(url) as client:
            client.config_set("set-max-intset-entries", 1_000_000)
        assert asyncio.run(ask(url)) is None


def test_what_redis_refuses_for_now_is_waited_for(tmp_path: Path) -> None:
    async def refused(url: str) -> None:
        index = await open_redis(url, dict.fromkeys(Language, 3))
        try:
            await index.clear("mine", "v")
            with redis.Redis.from_url(url) as client:
                client.config_set("min-replicas-to-write", 1)
            await index.apply([insert(1, bytes(16))], 1)
        finally:
            await index.close()

    with redis_server(tmp_path) as url, pytest.raises(Transient, match="NOREPLICAS"):
        asyncio.run(refused(url))


def test_a_password_is_not_told() -> None:
    with pytest.raises(Misuse) as told:
        asyncio.run(open_redis("redis://:Sec/ret@localhost", dict.fromkeys(Language, 3)))
    assert "Sec" not in str(told.value)
