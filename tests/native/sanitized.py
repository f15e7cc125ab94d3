"""Runs the laws of the native core over a library that gcc's AddressSanitizer and UndefinedBehaviorSanitizer watch.

The process imports a copy of the package with that library, so that the package needs no option to load another one.
A read or write beyond a buffer, or an operation that C does not define, ends the process with a report.  `make fuzz`
runs the laws for some seconds.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.paths import ROOT

PACKAGE = ROOT / "daemon" / "neardup"
MARK = "pytest.mark.native"
FLAGS = (
    "-std=c11", "-g1", "-O0", "-fPIC", "-shared", "-fno-omit-frame-pointer", "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
)  # fmt: skip
EXAMPLES = 200  # of each law, in `make fuzz`
HOSTILE_SECONDS = 5.0  # for each function, likewise


def build(sources: Sequence[Path], library: Path) -> None:
    """Compile C sources to a library with both sanitizers."""
    subprocess.run(["gcc", *FLAGS, *map(str, sources), "-o", str(library)], check=True)


def copy_package(folder: Path) -> Path:
    """Copy the package into a folder, with a sanitized library in place of its own, and return the folder."""
    shutil.copytree(PACKAGE, folder / "neardup", ignore=shutil.ignore_patterns("*.so"))
    native = folder / "neardup" / "core" / "native"
    build(sorted(native.glob("*.c")), native / "_neardup.abi3.so")
    return folder


def run(arguments: Sequence[str], import_from: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the root of the project, with the sanitizers' runtime and modules of another folder."""
    runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    env = os.environ | {
        "PYTHONPATH": f"{import_from}{os.pathsep}{ROOT}",
        "LD_PRELOAD": runtime.strip(),
        # Python leaks.  pytest has a handler of signals, which would say less.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:allow_user_segv_handler=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that each object is watched by itself
    }
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=env | variables, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def run_laws(
    import_from: Path, functions: Path, examples: int, hostile_seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run hypothesis's laws with the marker `native`, `examples` of each, and hostile calls beside theirs.

    These take `hostile_seconds` for each function.  `functions` becomes a file with the names of the functions that
    were called.
    """
    laws = [str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if MARK in path.read_text("utf-8")]
    options = (
        "-m",
        "native and hypothesis",
        "-x",
        "--capture=sys",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.native.hostile_calls",
    )
    variables = {"EXAMPLES": str(examples), "HOSTILE_SECONDS": str(hostile_seconds), "NATIVE_FUNCTIONS": str(functions)}
    return run(["-m", "pytest", *options, *laws], import_from, **variables)


def main(seconds: float) -> None:
    """Run the laws again and again, each time with other examples, until the time is over or one fails."""
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as name:
        package = copy_package(Path(name))
        while time.monotonic() < end:
            done = run_laws(package, package / "functions", EXAMPLES, HOSTILE_SECONDS)
            print(done.stdout.rstrip())  # noqa: T201 - this is a command
            if done.returncode != 0:
                sys.exit(done.stderr)


if __name__ == "__main__":
    main(float(sys.argv[1]))
