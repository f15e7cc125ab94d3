"""The package: `--help` loads little, a command that lacks an extra says how to install it, the metadata are right, and
`--licenses` names the licence of every installed package that it needs.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.metadata import metadata, requires
from pathlib import Path

import pytest
from click.testing import CliRunner
from neardup.cli import main
from packaging.requirements import Requirement

from tests.support.command import Neardup, assert_one_line, embedded
from tests.support.paths import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LIBRARIES = {
    "aws": ["aioboto3", "aiobotocore", "botocore", "certifi", "pycurl"],
    "parquet": ["pyarrow"],
    "pdf": ["weasyprint"],
    "redis": ["hiredis", "redis"],
    "translations": ["babel"],
    "xlsx": ["xlsxwriter"],
}
OPTIONAL = {name for names in LIBRARIES.values() for name in names}
HEAVY = {"msgspec", "numpy", "pydantic", "structlog", "rich", "aiohttp", "jinja2", *OPTIONAL}


@pytest.fixture
def bare(make_neardup: Callable[[str], Neardup], tmp_path: Path) -> Callable[[str], Neardup]:
    """Makes the command as it is without any extra."""
    for name in OPTIONAL:
        (tmp_path / "absent").mkdir(exist_ok=True)
        (tmp_path / "absent" / f"{name}.py").write_text(f"raise ImportError('absent', name='{name}')", encoding="utf-8")

    def make(config: str) -> Neardup:
        made = make_neardup(config)
        return Neardup(made.folder, made.env | {"PYTHONPATH": str(tmp_path / "absent")})

    return make


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Neardup:
    """The command on the samples, after a backfill."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("NEARDUP_")}
    made = Neardup(tmp_path_factory.mktemp("filled"), env)
    made.configure(embedded())
    assert made("backfill").code == 0
    return made


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["no-such-command"]])
def test_the_help_loads_no_large_library(arguments: list[str]) -> None:
    code = (
        "import atexit, sys; from neardup.cli import main\n"
        "atexit.register(lambda: print('LOADED', *sys.modules))\n"
        "main(sys.argv[1:])"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "click" in loaded, done.stderr
    assert not loaded & HEAVY, f"neardup {arguments[0]} loads {sorted(loaded & HEAVY)}, which takes too long"


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "neardup", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("neardup, version ")


def test_files_and_sqlite_need_no_extra(bare: Callable[[str], Neardup]) -> None:
    neardup = bare(embedded())
    for arguments in (["backfill"], ["export"], ["export", "--format", "html"], ["plan"], ["doctor"], ["status"]):
        done = neardup(*arguments)
        assert done.code == 0, f"neardup {arguments[0]}: {done.err}"


def test_without_the_extra_of_translations_the_desk_speaks_english(bare: Callable[[str], Neardup]) -> None:
    code = (
        "from neardup.moderation.desk import pages as p;"
        " print(*p.list_interfaces(), p.choose_preferred_interface('hi').code)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=bare("").env, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["en", "en"], done.stderr


@pytest.mark.parametrize(
    ("extra", "config", "arguments"),
    [
        ("parquet", embedded(), ["export", "-o", "flags.parquet"]),
        ("pdf", embedded(), ["case", "4104005", "--pdf"]),
        ("xlsx", embedded(), ["export", "-o", "flags.xlsx"]),
        ("aws", embedded(), ["export", "-o", "s3://bucket/flags.csv"]),
        ("redis", embedded(index="redis://127.0.0.1:1"), ["backfill"]),
        ("aws", embedded().replace("file:", "s3://bucket"), ["backfill"]),
        ("parquet", embedded(manifest=Path("list.parquet")), ["backfill"]),
    ],
)
def test_a_missing_extra_is_one_line_that_says_how_to_install_it(
    bare: Callable[[str], Neardup], filled: Neardup, extra: str, config: str, arguments: list[str]
) -> None:
    neardup = bare(config)
    (neardup.folder / "list.parquet").write_bytes(b"")
    if arguments[0] in {"case", "export"}:
        shutil.copyfile(filled.ledger, neardup.ledger)
    assert_one_line(neardup(*arguments), 2, f"pip install 'neardup[{extra}]'")


def test_the_extras_are_those_that_the_messages_name() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    for extra, libraries in LIBRARIES.items():
        named = {requirement.partition(">")[0].lower().replace("-", "_") for requirement in extras[extra]}
        assert named == set(libraries), extra
    base = " ".join(PYPROJECT["project"]["dependencies"])
    assert not [name for name in OPTIONAL if name in base]


def test_the_metadata_names_licence_and_audience() -> None:
    about = metadata("neardup")
    assert about["License-Expression"] == "Apache-2.0" and about["License-File"] == "LICENSE"
    assert about["Requires-Python"] == ">=3.11" and about["Description-Content-Type"] == "text/markdown"
    assert any(classifier.startswith("Topic :: ") for classifier in about.get_all("Classifier") or [])


def test_the_package_is_typed_and_holds_what_its_commands_need() -> None:
    package = ROOT / "daemon" / "neardup"
    for name in ("py.typed", "core/languages.toml", "samples/config.toml", "samples/manifest.csv", "ledger/schema.sql"):
        assert (package / name).exists(), name


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
