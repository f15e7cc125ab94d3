"""`neardup --licenses` names the licence of neardup and of every installed package that it needs, without a network."""

from importlib.metadata import requires
from pathlib import Path

from click.testing import CliRunner
from neardup.cli import main
from packaging.requirements import Requirement

from tests.support.paths import ROOT


def test_licenses_of_all_dependencies_are_listed() -> None:
    done = CliRunner().invoke(main, ["--licenses"])
    assert done.exit_code == 0, done.output
    own, *others = [line.partition(": ") for line in done.output.splitlines()]
    assert own[0].startswith("neardup ") and own[2] == "Apache-2.0"
    listed = {name.split()[0].lower().replace("_", "-") for name, _, _ in others}
    needed = {Requirement(requirement) for requirement in requires("neardup") or ()}
    assert {requirement.name.lower() for requirement in needed if requirement.marker is None} <= listed
    assert [name for name, _, licence in others if licence in ("", "not stated", "UNKNOWN")] == []


def test_license_is_the_standard_text() -> None:
    text = (ROOT / "LICENSE").read_text(encoding="ascii")
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text and len(text) == 11_358
    assert 'license = "Apache-2.0"' in Path(ROOT / "pyproject.toml").read_text(encoding="utf-8")
