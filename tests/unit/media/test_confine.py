"""What a reading process cannot do any more, tried in one."""

from __future__ import annotations

import subprocess
import sys

import pytest

_TRY = """
import ctypes, os, resource, socket, subprocess
from phronesis_media.reading.process import confine
confine(1 << 30)
libc = ctypes.CDLL(None, use_errno=True)
def refused(work):
    try:
        work()
    except OSError:
        return True
    return False
print(libc.socket(2, 1, 0) == -1 and libc.socket(1, 1, 0) == -1)
print(libc.execve(b"/bin/true", None, None) == -1 and libc.kill(os.getppid(), 0) == -1)
print(refused(lambda: socket.create_connection(("127.0.0.1", 9), 1)) and refused(lambda: socket.getaddrinfo("localhost", 80)))
print(refused(lambda: subprocess.run(["/bin/true"])) and refused(os.fork))
print(resource.getrlimit(resource.RLIMIT_AS) == (1 << 30, 1 << 30) and resource.getrlimit(resource.RLIMIT_CORE) == (0, 0))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the filter on calls is Linux's")
def test_a_reading_process_reaches_no_network_and_no_other_process() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", _TRY], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.split() == ["True"] * 5
