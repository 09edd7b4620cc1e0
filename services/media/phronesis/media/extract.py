"""The child process that reads one document, then ends: content on stdin, limits as JSON in its one argument.

Its answer is one line of JSON, then the text in UTF-8. The limits are the system's own, set before a parser is loaded.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import resource
import signal
import sys
from typing import Any

_FILE = 16 * 1024 * 1024
"""Bytes of a file that it may write: enough for compiled modules."""
_FILES = 64
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_REFUSED = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.gethostbyname", "subprocess.Popen", "os.system")
_REFUSED_PREFIXES = ("os.exec", "os.posix_spawn", "os.fork", "os.spawn", "os.remove", "os.rename", "shutil.")


def confine(memory: int, seconds: float) -> None:
    """Take the limits of the system upon this process, and give up network and other processes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    whole = max(1, int(seconds))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (whole, whole + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE, _FILE))
    resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, _FILES))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    sys.addaudithook(_guard)


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _REFUSED or event.startswith(_REFUSED_PREFIXES):
        raise PermissionError(f"{event} is not for a reader")


def _answer(limits: dict[str, Any]) -> tuple[dict[str, Any], str]:
    try:
        from .readers import Refused, read

        content = sys.stdin.buffer.read()
        with contextlib.redirect_stdout(None):
            text, engine, pages = read(content, limits["type"], limits["pages"], limits["characters"])
    except MemoryError:
        return {"error": "memory"}, ""
    except Refused as refused:
        return {"error": refused.args[0]}, ""
    except Exception:  # whatever a parser raises at hostile content is an answer, and its words may quote the content
        return {"error": "unreadable"}, ""
    return {"engine": engine, "pages": pages}, text


def main() -> None:
    """The program."""
    limits = json.loads(sys.argv[1])
    confine(limits["memory"], limits["seconds"])
    logging.disable()
    head, text = _answer(limits)
    out = sys.stdout.buffer
    out.write(json.dumps(head).encode() + b"\n" + text[: limits["characters"] + 1].encode("utf-8", "replace"))
    out.flush()
    os._exit(0)  # no time for the clean-up of parsers


if __name__ == "__main__":
    main()
