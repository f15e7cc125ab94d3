"""Laws of what `make wheel` and `make venv` build: the wheel is whole and runs without a compiler, in any Python of its
platform; the source archive builds; and without a compiler an installation goes on, and says so.

Dependencies come from the environment of the tests, so that nothing is fetched.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PACKAGE = Path("daemon", "neardup")
NATIVE = PACKAGE / "core" / "native"
BUILT = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
PIP = (sys.executable, "-m", "pip", "-q", "--disable-pip-version-check")
OFFLINE = ("--no-deps", "--no-index", "--no-build-isolation")
TOOLS_OF_MAKE = ("sh", "make", "rm", "touch", "expr", "nproc", "id", "uname")


def copy_of_the_source(folder: Path) -> Path:
    """What the package is built from, without what an earlier build has left there, and without optimising the C."""
    folder.mkdir()
    for name in ("README.md", "LICENSE", "Makefile"):
        shutil.copy(ROOT / name, folder)
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(project.replace('"-O3"', '"-O0"'), encoding="utf-8")
    shutil.copytree(ROOT / PACKAGE, folder / PACKAGE, ignore=BUILT)
    return folder


def empty_environment(folder: Path) -> Path:
    """An environment that sees the libraries of this one, but not its neardup."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [site_packages] = folder.glob("lib/python*/site-packages")
    (site_packages / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return folder


def without_compiler(folder: Path) -> dict[str, str]:
    """Variables of a machine that has make and what its recipes call, but no compiler."""
    folder.mkdir()
    for name in TOOLS_OF_MAKE:
        path = shutil.which(name)
        assert path is not None, f"{name} is missing, which make needs"
        (folder / name).symlink_to(path)
    hidden = {"CC", "PYTHONPATH", "MAKEFLAGS", "MAKELEVEL"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"PATH": str(folder)}


def finished(command: list[str | Path], **options: object) -> str:
    """The output of a command that ends well."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload]
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def source_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copy_of_the_source(tmp_path_factory.mktemp("source") / "neardup")
    finished([sys.executable, "-c", "from setuptools.build_meta import build_sdist; build_sdist('dist')"], cwd=folder)
    [archive] = (folder / "dist").iterdir()
    return archive


@pytest.fixture(scope="module")
def wheel(source_archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that is built from the source archive, as `make wheel` does."""
    folder = tmp_path_factory.mktemp("wheel")
    finished([*PIP, "wheel", *OFFLINE, "-w", folder, source_archive])
    [wheel] = folder.iterdir()
    return wheel


def test_the_source_archive_has_the_sources_of_the_native_core(source_archive: Path) -> None:
    with tarfile.open(source_archive) as archive:
        names = {Path(*Path(name).parts[1:]) for name in archive.getnames()}
    sources = {path.relative_to(ROOT) for path in (ROOT / NATIVE).glob("*.[ch]")}
    assert len(sources) > 2 and sources <= names, f"the source archive lacks {sources - names}"
    assert not {name for name in names if name.suffix in {".so", ".pyc"}}


def test_the_wheel_has_every_file_of_the_package_and_the_library_in_place_of_its_sources(wheel: Path) -> None:
    tree = shutil.copytree(ROOT / PACKAGE, wheel.parent / "neardup", ignore=BUILT)
    expected = {str(path.relative_to(tree.parent)) for path in tree.rglob("*") if path.is_file()}
    expected = {name for name in expected if not name.endswith((".c", ".h"))}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.partition("/")[0].endswith(".dist-info")}
    assert names == expected | {"neardup/core/native/_neardup.abi3.so"}


def test_one_wheel_serves_every_python_of_a_platform(wheel: Path) -> None:
    platform = sysconfig.get_platform().replace("-", "_")
    assert wheel.name.endswith(f"-cp311-abi3-{platform}.whl"), wheel.name


def test_the_wheel_runs_where_no_compiler_is(wheel: Path, tmp_path: Path) -> None:
    environment, env = empty_environment(tmp_path / "environment"), without_compiler(tmp_path / "tools")
    finished([*PIP, "--python", environment / "bin" / "python", "install", *OFFLINE, wheel])
    code = "import neardup.core.native as native; print(native.__file__, native.LIBRARY is not None)"
    place, has_library = finished([environment / "bin" / "python", "-c", code], cwd=tmp_path, env=env).split()
    assert Path(place).is_relative_to(environment) and has_library == "True"
    output = finished([environment / "bin" / "neardup", "demo", tmp_path / "demo"], cwd=tmp_path, env=env)
    assert "4104005" in output, output


def test_without_a_compiler_make_says_so_in_one_line_and_goes_on(tmp_path: Path) -> None:
    source, env = copy_of_the_source(tmp_path / "neardup"), without_compiler(tmp_path / "tools")
    environment = empty_environment(source / ".venv")
    (source / "deploy").mkdir()
    (source / "deploy" / "requirements.lock").touch()
    (environment / "locked.stamp").touch()
    for _ in range(2):  # the second time, since nothing was built
        said = finished(["make", "--silent", "venv"], cwd=source, env=env).splitlines()
        assert len(said) == 1 and "apt-get install gcc libc6-dev" in said[0] and "slower" in said[0], said
    code = "import neardup.core.native as native; print(native.WHY_MISSING)"
    why = finished([environment / "bin" / "python", "-c", code], cwd=tmp_path, env=env)
    assert "install a C compiler" in why
