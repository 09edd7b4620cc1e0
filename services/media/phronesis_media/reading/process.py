"""A reading process.

Jobs on stdin, answers on stdout, one after the other, until stdin ends; before it sees foreign bytes it gives up network,
other processes, memory, time and files. It says `ready` first. A job is a line of JSON (`Job`, and `size`), then `size`
bytes. An answer is a line of JSON, then as many bytes as it says.
"""

from __future__ import annotations

import ctypes
import errno
import gc
import json
import logging
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import IO, Any

from .jobs import READY, Answer, Job, Refused

_FILE = 16 * 1024 * 1024
"""Bytes of a file that it may write: enough for compiled modules."""
_FILES = 64
_DIE_WITH_PARENT, _NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 1, 38, 22, 2  # of prctl
_NEW_NETWORK, _NEW_USER = 0x40000000, 0x10000000  # of unshare
_REFUSED = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "subprocess.Popen", "os.system")
_REFUSED_PREFIXES = ("os.exec", "os.posix_spawn", "os.fork", "os.spawn", "os.remove", "os.rename", "shutil.")
# By machine: the kernel's mark of the architecture, then the numbers of socket, execve, execveat, ptrace, kill, unshare,
# setns, process_vm_readv, process_vm_writev and io_uring_setup, which can open sockets too.
_CALLS = {
    "x86_64": (0xC000003E, (41, 59, 322, 101, 62, 272, 308, 310, 311, 425)),
    "aarch64": (0xC00000B7, (198, 221, 281, 117, 129, 97, 268, 270, 271, 425)),
}


def confine(memory: int) -> None:
    """Take the limits of the system upon this process, for good.

    Args:
        memory: bytes of address space.
    """
    if sys.platform == "linux":
        _leave_network()
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE, _FILE))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    sys.addaudithook(_guard)


@contextmanager
def limited(seconds: float, cpu: float) -> Iterator[None]:
    """End this process where the block takes longer than `seconds`, or more than `cpu` seconds of processor time."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    whole = int(used.ru_utime + used.ru_stime + cpu) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (whole, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _leave_network() -> None:
    """A namespace without network where the system grants one, and in any case a filter on the calls that lead outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_NETWORK) != 0:
        libc.unshare(_NEW_USER | _NEW_NETWORK)
    libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)  # after unshare, which takes it back
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    known = _CALLS.get(platform.machine())
    if known is not None:
        _filter_calls(libc, *known)


def _filter_calls(libc: Any, architecture: int, refused: tuple[int, ...]) -> None:
    """Let the kernel refuse these calls (seccomp): native code meets this, where the audit hook stops Python alone."""
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    refuse, allow = 0x00050000 | errno.EPERM, 0x7FFF0000
    left = len(refused)
    program = [
        (load, 0, 0, 4),
        (equal, 0, left + 3, architecture),
        (load, 0, 0, 0),
        (at_least, left + 1, 0, 0x40000000),  # the same calls by other numbers
        *((equal, left + 1 - at, 0, number) for at, number in enumerate(refused, 1)),
        (answer, 0, 0, allow),
        (answer, 0, 0, refuse),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    libc.prctl(_SECCOMP, _FILTER, header, 0, 0)


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED or event.startswith(_REFUSED_PREFIXES):
        raise PermissionError(f"{event} is not for a reader")


_OUT_OF_MEMORY = ("bad_alloc", "bad allocation", "Failed to allocate", "Insufficient memory", "OutOfMemory")


def _answer(job: Job, data: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        answer: Answer = import_module(f".{job.name}", __package__).read(data, job)
    except MemoryError:
        return {"error": "memory"}, b""
    except Refused as refused:
        return {"error": refused.args[0]}, b""
    except Exception as error:  # whatever a parser raises at hostile content is an answer, and its words may quote the content
        return {"error": "memory" if any(sign in str(error) for sign in _OUT_OF_MEMORY) else "unreadable"}, b""
    return {"engine": answer.engine, **answer.facts}, answer.body


def _pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Where jobs come from and answers go to, out of the way of libraries that print or ask."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    return source, sink


def main() -> None:
    """The program; its arguments are its memory in bytes, and the module whose models it loads before it says `ready`."""
    confine(int(sys.argv[1]))
    logging.disable()
    source, sink = _pipes()
    for name in sys.argv[2:]:
        import_module(f".{name}", __package__).warm()
    sink.write(READY)
    sink.flush()
    while line := source.readline():
        told = json.loads(line)
        data = source.read(told.pop("size"))
        job = Job(**told)
        with limited(job.seconds, job.cpu):
            head, body = _answer(job, data)
        sink.write(json.dumps({**head, "size": len(body)}).encode() + b"\n" + body)
        sink.flush()
        del data, body
        gc.collect()
    os._exit(0)  # no time for the clean-up of parsers


if __name__ == "__main__":
    main()
