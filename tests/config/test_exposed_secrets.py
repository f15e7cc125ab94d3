"""A secret in a configuration file that others can read: a warning names its key, never the secret."""

from collections.abc import Callable
from pathlib import Path

import pytest
from neardup.config.loading import list_exposed_secrets

from tests.support.command import Neardup, embedded

SECRETS = {
    "index.url": '[index]\nurl = "redis://user:hidden@host:6379"\n',
    "review.token": '[review]\ntoken = "hidden-hidden-hidden"\n',
    "export.webhook": '[export]\nwebhook = "https://chat.example/hidden"\n',
}
PLAIN = '[index]\nurl = "redis://host:6379"\n[review]\nlisten = "127.0.0.1:1"\n[export]\npath = "flags.csv"\n'


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, int], Path]:
    def write(text: str, mode: int) -> Path:
        path = tmp_path / "config.toml"
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)
        return path

    return write


@pytest.mark.parametrize("key", SECRETS)
def test_a_secret_readable_by_others_is_reported_by_key(key: str, written: Callable[[str, int], Path]) -> None:
    assert list_exposed_secrets(written(SECRETS[key], 0o644)) == [key]
    assert list_exposed_secrets(written(SECRETS[key], 0o640)) == []


def test_a_password_in_a_urls_query_is_a_secret(written: Callable[[str, int], Path]) -> None:
    assert list_exposed_secrets(written('[index]\nurl = "unix:///redis.sock?password=hidden"\n', 0o644)) == [
        "index.url"
    ]


def test_a_url_that_cannot_be_read_is_a_secret_if_it_names_a_user(written: Callable[[str, int], Path]) -> None:
    """A variable may override it."""
    for url, keys in (("redis://[::1", []), ("redis://user:hidden@[::1", ["index.url"])):
        assert list_exposed_secrets(written(f'[index]\nurl = "{url}"\n', 0o644)) == keys


def test_a_file_without_secrets_may_be_world_readable(written: Callable[[str, int], Path]) -> None:
    assert list_exposed_secrets(written(PLAIN, 0o644)) == []


def test_commands_warn_of_the_key_without_the_secret(neardup: Neardup) -> None:
    neardup.configure(embedded() + SECRETS["review.token"])
    for command in ("backfill", "status"):
        ended = neardup(command)
        assert ended.code == 0, ended.err
        assert "review.token" in ended.err and "can read a secret" in ended.err
        assert "hidden" not in ended.out + ended.err
    (neardup.folder / "config.toml").chmod(0o600)
    assert "can read a secret" not in neardup("status").err
