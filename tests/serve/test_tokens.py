"""Laws of the tokens: each is found with its rights, no other is, and a change of the file counts at once."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from neardup.errors import Misuse
from neardup.option_values import Right
from neardup.serve.tokens import new_token, open_tokens, parse_rights, read_tokens

from tests.support.sampling import count_examples

NAMES = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True)
RIGHTS = st.frozensets(st.sampled_from(Right), min_size=1)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=count_examples(30))
@given(st.dictionaries(NAMES, RIGHTS, min_size=1, max_size=4), st.booleans())
def test_each_token_is_found_with_its_rights(
    tmp_path: Path, rights: dict[str, frozenset[Right]], is_edited: bool
) -> None:
    path, secrets = tmp_path / "tokens.toml", {}
    path.unlink(missing_ok=True)
    for name, chosen in rights.items():
        secrets[name] = new_token(path, name, chosen)
        if is_edited:  # by an editor that leaves the last line without an end
            path.write_text(path.read_text("utf-8").rstrip("\n"), "utf-8")
    tokens = open_tokens(path)
    for name, secret in secrets.items():
        token = tokens.find(secret)
        assert token is not None
        assert (token.name, token.rights) == (name, rights[name])
        assert secret not in path.read_text(encoding="utf-8"), "the file holds the token itself"
        assert tokens.find(secret[:-1]) is tokens.find("") is tokens.find(token.digest) is None
    assert path.stat().st_mode & 0o007 == 0, "every user of the machine can read the tokens"


def test_a_token_that_is_added_or_removed_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    first = new_token(path, "first", frozenset({Right.CHECK}))
    tokens = open_tokens(path)
    second = new_token(path, "second", frozenset(Right))
    assert tokens.find(second) is not None
    path.write_text("not TOML", encoding="utf-8")
    assert tokens.find(first) is not None, "a damaged file locked everyone out"
    path.write_text("", encoding="utf-8")
    assert tokens.find(first) is None


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    new_token(path, "app", frozenset({Right.CHECK}))
    for name, words in (("app", "has a token 'app'"), ("a b", "a name has up to 64"), ("", "a name has up to 64")):
        with pytest.raises(Misuse, match=words):
            new_token(path, name, frozenset({Right.CHECK}))
    with pytest.raises(Misuse, match="a right is one of check, store, forget"):
        parse_rights(["check", "read"])
    with pytest.raises(Misuse, match=r"cannot read .*none\.toml"):
        read_tokens(tmp_path / "none.toml")
    for text in (
        "[app",
        "app = 1",
        "[app]\nsha256 = 'x'\nrights = []",
        f"[app]\nsha256 = '{'0' * 64}'\nrights = ['x']",
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(Misuse) as refused:
            read_tokens(path)
        assert "\n" not in str(refused.value)
    with pytest.raises(Misuse, match="cannot write"):
        new_token(tmp_path / "none" / "tokens.toml", "app", frozenset({Right.CHECK}))
