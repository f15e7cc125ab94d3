"""Redis holds the documented keys and no others; an unsuitable Redis is refused in one line.

A clear deletes all keys of the index, of either layout, and no others; an interrupted clear is started again.
"""

import asyncio
import struct
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import redis
import trustme
from hypothesis import example, given
from hypothesis import strategies as st
from neardup.core.candidates.banding import Banding
from neardup.core.languages import LANGUAGES
from neardup.errors import Fatal, Misuse, NeardupError, Transient
from neardup.index.protocol import IndexPosition
from neardup.index.redis import client as client_module
from neardup.index.redis import open_redis
from neardup.index.redis.client import connect, exchange, translate_errors
from neardup.ops.doctor import _write_and_find_probe
from neardup.records import BandedFingerprint, Change

from tests.support.index_under_test import Bench, insert
from tests.support.languages import CODES, HINDI, ODIA, TAMIL
from tests.support.servers import free_port, redis_server

BANDINGS = dict.fromkeys(LANGUAGES, Banding())


def test_the_documented_layout_writes_the_documented_keys(redis_or_valkey_url: str, tmp_path: Path) -> None:
    bench = Bench("redis", redis_or_valkey_url, tmp_path)
    simhash = bytes.fromhex("a8d3000102030405060708090a0b0c0d")
    signature = bytes.fromhex("00ff0102ab340af1") + bytes(56)
    for n in (1, 2):
        bench.apply(Change(n, 40 + n, None, BandedFingerprint(HINDI, simhash, signature), 69_999 + n), applied=n)
    bench.close()
    with redis.Redis.from_url(redis_or_valkey_url) as client:
        assert client.smembers("HINDI:0:A8D3") == client.smembers("HINDI:7:0C0D") == {b"41", b"42"}
        assert client.hget("simhashes:HINDI", "42") == simhash.hex().encode()
        assert client.object("encoding", "HINDI:0:A8D3") == b"intset"
        for key in ("sketch:HINDI:0:00FF", "sketch:HINDI:3:0AF1", "sketch:HINDI:31:0000"):
            assert struct.unpack("<2I", client.get(key)) == (70_000, 70_001), key
        assert client.get("neardup:applied") == b"2"
        assert client.get("neardup:bands") == " ".join(f"{language}=32" for language in LANGUAGES).encode()
        assert client.dbsize() == 8 + 1 + 32 + 4, client.keys()


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
    monkeypatch.setattr(messages if step == "scan_iter" else client_module, step, killed)
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


async def test_an_error_among_replies_is_raised_once_all_are_read(redis_or_valkey_url: str) -> None:
    client = (await connect(redis_or_valkey_url)).messages
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        await exchange(client, [("SET", "text", "a"), ("HGET", "text", "field"), ("GET", "text"), ("HLEN", "text")])
    assert await exchange(client, [("GET", "text"), ("CONFIG GET", "maxmemory-policy")]) == [
        b"a",
        {"maxmemory-policy": "noeviction"},
    ], "the replies of one message are taken for those of another"
    await client.aclose()


def test_the_compact_layout_writes_its_keys_at_exact_size(redis_or_valkey_url: str, tmp_path: Path) -> None:
    bench = Bench("compact redis", redis_or_valkey_url, tmp_path)
    banded, numbers = BandedFingerprint(HINDI, bytes(16), bytes(64)), range(70_000, 70_020)
    for n, number in enumerate(numbers, 1):
        bench.apply(Change(n, 40 + n, None, banded, number), applied=n)
    bench.close()
    with redis.Redis.from_url(redis_or_valkey_url) as client:
        keys = {key for key in client.scan_iter() if not key.startswith(b"neardup:")}
        assert keys == {*(b"hi:%d:0000" % band for band in range(32)), *(b"hi:n%d:0000" % block for block in range(5))}
        for key in keys:
            assert client.get(key) == struct.pack(f"<{len(numbers)}I", *numbers), key
            assert client.object("encoding", key) == b"raw"
        appended = min(map(client.memory_usage, keys))  # an allocator gives a block with 16 bytes to spare now and then
        for key in keys:
            client.set(key, client.get(key))
        written = min(map(client.memory_usage, keys))
        # a value that is set saves 24 bytes within its object in Valkey
        assert appended <= written + 24, "an appended string has more room than it needs"
        assert client.get("neardup:stories:hi") == str(len(numbers)).encode()
        assert client.get("neardup:bits") == " ".join(f"{language}=14" for language in LANGUAGES).encode()


def test_widths_that_another_process_chose_are_read_again(redis_or_valkey_url: str, tmp_path: Path) -> None:
    first, second = (Bench("compact redis", redis_or_valkey_url, tmp_path) for _ in range(2))
    banded = BandedFingerprint(TAMIL, bytes(range(16)), bytes(range(64)))
    assert first.numbers(banded) == [[]]
    second.runner.run(second.index.clear("ledger-1", "version-1", {TAMIL: 4_000_000}))
    second.apply(Change(1, 7, None, banded, 1), applied=1)
    assert first.numbers(banded) == [[1]], "the lookup used the former widths"
    first.runner.run(first.index.clear("ledger-1", "version-1", {TAMIL: 1000}))
    second.apply(Change(1, 7, None, banded, 1), applied=1)
    assert first.numbers(banded) == [[1]], "the insert used the former widths"
    first.close()
    second.close()


def test_the_doctor_notices_a_full_redis_that_holds_its_probe(redis_program: str, tmp_path: Path) -> None:
    with redis_server(tmp_path, program=redis_program) as url:
        bench = Bench("compact redis", url, tmp_path)
        bench.runner.run(_write_and_find_probe(bench.index))
        with redis.Redis.from_url(url) as client:
            client.config_set("maxmemory", 1)
            with pytest.raises(NeardupError):
                bench.runner.run(_write_and_find_probe(bench.index))
        bench.close()


def test_bucket_sizes_use_the_recorded_widths(redis_or_valkey_url: str, tmp_path: Path) -> None:
    bench = Bench("compact redis", redis_or_valkey_url, tmp_path)
    bench.clear({HINDI: 4_000_000})
    story = BandedFingerprint(HINDI, bytes(range(16)), bytes(range(64)))
    bench.apply(Change(0, 1, None, story, 7))
    bench.reopen(Banding(max_bucket=10))  # as a process that has looked nothing up yet
    assert set(bench.read_bucket_sizes(story).values()) == {1}
    bench.close()


def test_on_a_cluster_the_language_is_the_hash_tag(cluster_url: str, tmp_path: Path) -> None:
    bench = Bench("cluster", cluster_url, tmp_path)
    bench.apply(Change(1, 7, None, BandedFingerprint(ODIA, bytes(16), bytes(64)), 5), applied=1)
    bench.close()
    with redis.Redis.from_url(cluster_url) as client:
        assert client.smembers("{ODIA}:7:0000") == {b"7"}
        assert client.get("sketch:{ODIA}:31:0000") == struct.pack("<I", 5)
        assert client.get("neardup:applied:{ODIA}") == b"1"


def test_a_cluster_stopped_between_languages_applies_each_change_once(cluster_url: str, tmp_path: Path) -> None:
    bench = Bench("cluster", cluster_url, tmp_path)
    log = [
        Change(n + 1, n, None, BandedFingerprint(language, bytes(16), bytes(64)), n)
        for n, language in enumerate(LANGUAGES)
    ]
    bench.apply(*log, applied=len(log))
    with redis.Redis.from_url(cluster_url) as client:
        client.set("neardup:applied:{TAMIL}", 3)
        client.delete(*client.keys("*{TAMIL}:?:????"), *client.keys("*{TAMIL}:??:????"))
    assert bench.read_position().applied == 3
    bench.apply(*log[3:6], applied=6)
    bench.apply(*log[6:], applied=len(log))
    assert bench.read_position().applied == len(log)
    assert set(bench.read_bucket_sizes(*(change.new for change in log if change.new)).values()) == {1}
    bench.close()


def test_on_a_cluster_the_compact_keys_of_a_language_share_a_slot(cluster_url: str, tmp_path: Path) -> None:
    bench = Bench("compact cluster", cluster_url, tmp_path)
    bench.apply(Change(1, 7, None, BandedFingerprint(ODIA, bytes(16), bytes(64)), 5), applied=1)
    bench.close()
    with redis.Redis.from_url(cluster_url) as client:
        assert client.get("{or}:n4:0000") == client.get("{or}:31:0000") == struct.pack("<I", 5)
        assert client.get("neardup:applied:{or}") == client.get("neardup:stories:{or}") == b"1"


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        (["--maxmemory-policy", "allkeys-lru"], Fatal, "maxmemory-policy noeviction"),
        (["--requirepass", "secret"], Fatal, "refuses"),
    ],
)
def test_an_unsuitable_redis_is_refused(
    redis_program: str, tmp_path: Path, options: list[str], error: type[Exception], word: str
) -> None:
    with redis_server(tmp_path, *options, program=redis_program) as url, pytest.raises(error, match=word):
        asyncio.run(open_redis(url, BANDINGS, CODES))


def test_a_password_in_the_url_logs_in(redis_program: str, tmp_path: Path) -> None:
    with redis_server(tmp_path, "--requirepass", "secret", program=redis_program) as url:

        async def open_and_close() -> None:
            await (await open_redis(url.replace("unix://", "unix://:secret@"), BANDINGS, CODES)).close()

        asyncio.run(open_and_close())


def test_tls_with_a_user_and_a_password_connects(redis_program: str, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "server.pem"))
    port = free_port()
    options = ["--tls-port", str(port), "--tls-auth-clients", "no", "--tls-ca-cert-file", "ca.pem"]
    options += ["--tls-cert-file", "server.pem", "--tls-key-file", "server.pem"]
    options += ["--user", *["neardup", "on", ">secret", "~*", "+@all"]]

    async def position(url: str) -> IndexPosition:
        index = await open_redis(url, BANDINGS, CODES)
        try:
            await index.clear("mine", "v")
            return await index.read_position()
        finally:
            await index.close()

    with ExitStack() as stack:
        try:
            stack.enter_context(redis_server(tmp_path, *options, program=redis_program))
        except RuntimeError as error:
            if redis_program != "valkey" or "TLS support" not in str(error):
                raise
            pytest.skip(f"this build of {redis_program} has no TLS")
        url = f"rediss://neardup:secret@localhost:{port}/0?ssl_ca_certs={tmp_path}/ca.pem"
        assert asyncio.run(position(url)).ledger_id == "mine"
        with pytest.raises(Fatal, match="refuses") as refused:
            asyncio.run(position(url.replace("secret", "wrong-password")))
        assert "wrong-password" not in str(refused.value), "the message shows the password"
        with pytest.raises(Transient, match="certificate"):
            asyncio.run(position(url.partition("?")[0]))


def test_an_unreachable_redis_is_a_transient_error() -> None:
    with pytest.raises(Transient, match="does not answer"):
        asyncio.run(open_redis(f"redis://127.0.0.1:{free_port()}", BANDINGS, CODES))


def test_a_small_intset_limit_is_reported(redis_program: str, tmp_path: Path) -> None:
    async def ask(url: str) -> str | None:
        index = await open_redis(url, BANDINGS, CODES)
        try:
            return await index.find_problem()
        finally:
            await index.close()

    with redis_server(tmp_path, program=redis_program) as url:
        assert "set-max-intset-entries" in (asyncio.run(ask(url)) or "")
        with suppress(Exception), redis.Redis.from_url(url) as client:
            client.config_set("set-max-intset-entries", 1_000_000)
        assert asyncio.run(ask(url)) is None


def test_a_temporary_refusal_by_redis_is_transient(redis_program: str, tmp_path: Path) -> None:
    async def refused(url: str) -> None:
        index = await open_redis(url, BANDINGS, CODES)
        try:
            await index.clear("mine", "v")
            with redis.Redis.from_url(url) as client:
                client.config_set("min-replicas-to-write", 1)
            await index.apply([insert(1, bytes(16))], 1)
        finally:
            await index.close()

    with redis_server(tmp_path, program=redis_program) as url, pytest.raises(Transient, match="NOREPLICAS"):
        asyncio.run(refused(url))


def test_a_malformed_url_hides_its_password() -> None:
    with pytest.raises(Misuse) as refused:
        asyncio.run(open_redis("redis://:Sec/ret@localhost", BANDINGS, CODES))
    assert "Sec" not in str(refused.value)


@pytest.mark.parametrize(
    "kind", [redis.ResponseError, redis.exceptions.NoPermissionError, redis.ConnectionError, redis.AuthenticationError]
)
@given(message=st.text())
@example(message="\x1b[31mred\r\n\x07\x00 alarm")
def test_what_a_server_says_is_shown_without_control_characters(kind: type[redis.RedisError], message: str) -> None:
    async def fail() -> None:
        async with translate_errors():
            raise kind(message)

    with pytest.raises(NeardupError) as shown:
        asyncio.run(fail())
    assert str(shown.value).isprintable(), "a terminal would interpret what the server sent"
