"""All threads of a process allocate from one arena."""

import subprocess
import sys
from textwrap import dedent

import pytest

# prints what malloc knows of its arenas, after several threads have allocated at the same time
PROGRAM = dedent(
    """
    import ctypes, threading
    {begin}
    libc = ctypes.CDLL(None)
    barrier, addresses = threading.Barrier(4), []
    def allocate():
        barrier.wait()
        addresses.append(libc.malloc(10_000))
        barrier.wait()
    threads = [threading.Thread(target=allocate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    libc.fdopen.restype = ctypes.c_void_p
    libc.fflush(None)
    out = ctypes.c_void_p(libc.fdopen(1, b"w"))
    libc.malloc_info(0, out)
    libc.fflush(out)
    """
)


@pytest.mark.parametrize(
    ("begin", "is_one"),
    [("", False), ("from neardup.process import use_one_arena; use_one_arena()", True)],
    ids=["as glibc does by itself", "with one arena"],
)
def test_threads_share_one_arena(begin: str, is_one: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(begin=begin)], capture_output=True, text=True, check=True
    )
    arenas = done.stdout.count("<heap nr=")
    assert (arenas == 1) is is_one, f"four threads allocated from {arenas} arenas"
