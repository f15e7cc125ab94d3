"""Refuses executable memory, as the MemoryDenyWriteExecute= of a unit does.

    python -m tests.support.faults.executable_memory COMMAND ARGUMENT...

runs a command that, with all processes it starts, can map files as code, but make no memory executable that it wrote.
"""

import ctypes
import os
import sys

PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1  # of linux/prctl.h; Linux 6.3


def refuse_executable_memory() -> bool:
    """Refuse it to this process and to all that it starts; False if the kernel cannot."""
    return bool(ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0)


if __name__ == "__main__":
    if not refuse_executable_memory():
        sys.stderr.write("this kernel cannot refuse executable memory\n")
    os.execvp(sys.argv[1], sys.argv[1:])
