"""Runs one command in a process group of its own, and ends all of it when its own parent ends. It imports nothing of ours.

python -I -B mcp_launcher.py PARENT PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import sys

_DIE_WITH_PARENT = 1
_NO_NEW_PRIVILEGES = 38
_FILES = 512
_LARGEST_FILE = 64 * 1024 * 1024


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = _FILES if most == resource.RLIM_INFINITY else min(_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


def main(parent: int, command: list[str]) -> int:
    """Run `command` to its end; returns its exit code."""
    signals = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
    if libc is not None:
        libc.prctl(_DIE_WITH_PARENT, signal.SIGTERM)
        libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if os.getppid() != parent:
        return 1
    child = os.fork()
    if child == 0:
        try:
            os.setpgid(0, 0)
            _limit()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    os.close(0)
    os.close(1)
    ended = signal.sigwait(signals)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF if ended == signal.SIGCHLD else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
