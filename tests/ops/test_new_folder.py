"""Laws: the written configuration has the values that it was given, keeps every other line, and is valid."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from neardup.cli.start import Value, make_config_text
from neardup.config.loading import load

from tests.support.paths import SAMPLES

KEYS = ["source.manifest", "content.url", "content.region", "extract.body", "index.url", "ledger.path", "source.output"]
ORIGINAL = (SAMPLES / "config.toml").read_text(encoding="utf-8")
texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.dictionaries(st.sampled_from(KEYS), texts), st.none() | st.lists(texts))
def test_values_are_read_as_they_were_given(values: dict[str, str], strip: list[str] | None) -> None:
    lists: dict[str, Value] = {} if strip is None else {"extract.strip": tuple(strip)}
    written = make_config_text(lists | values)
    tables, before = tomllib.loads(written), tomllib.loads(ORIGINAL)
    for name, value in values.items():
        section, key = name.split(".")
        assert tables[section].pop(key) == value
        before[section].pop(key, None)
    if strip is not None:
        assert tables["extract"].pop("strip") == strip
        before["extract"].pop("strip")
    assert tables == before, "a key without a value here must keep its line"
    assert len(written.splitlines()) >= len(ORIGINAL.splitlines()) - 1


def test_the_commented_lines_are_valid_too(tmp_path: Path) -> None:
    values = {"source.kind": "athena", "source.database": "d", "source.output": "s3://r/"}
    path = tmp_path / "config.toml"
    text = make_config_text(values | {"content.url": "s3://pages/html", "content.region": "ap-south-1"})
    path.write_text(text.replace("# backfill_sql", "backfill_sql").replace("# daily_sql", "daily_sql"))
    assert (load(path).source.kind, load(path).content.region) == ("athena", "ap-south-1")


def test_a_key_that_is_not_set_is_a_comment() -> None:
    text = make_config_text({"source.kind": "folder", "source.manifest": None})
    assert "\n# manifest = " in text and "manifest" not in tomllib.loads(text)["source"]


def test_a_key_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"run\.colour"):
        make_config_text({"run.colour": "red"})
