"""Laws of the library itself: it is there, its header is complete, and no input makes it leave its buffers."""

import re
from pathlib import Path

from neardup.core import native

from tests.native.sanitized import MARK, PACKAGE, build, copy_package, run, run_laws
from tests.support.sampling import count_examples

HEADER = PACKAGE / "core" / "native" / "neardup.h"
OWN_FUNCTIONS = {"nd_interface"}  # the loader calls it without a binding
EXAMPLES = count_examples(20)  # of each law: its own room tries more
OVERRUN = "#include <stdint.h>\nint64_t last(const uint8_t *bytes, int64_t size) { return bytes[size]; }\n"


def declared() -> set[str]:
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(encoding="utf-8"), flags=re.DOTALL)
    return set(re.findall(r"ND_API [\w ]+?\*?(nd_\w+)\(", text))


def test_there_is_a_library() -> None:
    assert native.LIBRARY is not None, f"{native.WHY_MISSING}; then the laws of its functions say nothing"


def test_the_library_has_each_function_of_the_header() -> None:
    assert native.LIBRARY is not None
    missing = {name for name in declared() if not hasattr(native.LIBRARY, name)}
    assert declared() >= OWN_FUNCTIONS and not missing, f"not in the library: {missing}"


def test_a_sanitizer_reports_one_byte_too_far(tmp_path: Path) -> None:
    (tmp_path / "overrun.c").write_text(OVERRUN, encoding="utf-8")
    build([tmp_path / "overrun.c"], tmp_path / "overrun.so")
    code = f"import ctypes; ctypes.CDLL('{tmp_path}/overrun.so').last(b'x' * 1000, 1001)"
    done = run(["-c", code], tmp_path)
    assert done.returncode != 0 and "heap-buffer-overflow" in done.stderr, done.stderr


def test_hostile_input_keeps_every_function_inside_its_buffers(tmp_path: Path) -> None:
    package = copy_package(tmp_path / "package")
    done = run_laws(package, tmp_path / "functions", examples=EXAMPLES, hostile_seconds=0.2)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[:6000]}"
    called = set((tmp_path / "functions").read_text(encoding="utf-8").split())
    untried = declared() - OWN_FUNCTIONS - called
    assert not untried, f"no law with {MARK} calls {sorted(untried)}"
