"""The blocking client of the SDK, generated from the one for asyncio."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import unasync

from .tree import ROOT

SOURCE = ROOT / "libs" / "client" / "phronesis" / "aio.py"
TARGET = SOURCE.with_name("sync.py")
_NOTICE = "\n\n# Generated from aio.py by `make docs`.\n"
_TEXTS = {
    '"""The SDK for asyncio."""\n': f'"""The SDK for blocking code."""{_NOTICE}',
    "A stack of Phronesis, for asyncio.": "A stack of Phronesis, for blocking code; safe to share between threads.",
    "Coroutine[Any, Any, T]": "T",
}
_NAMES = {
    "AsyncClient": "Client",
    "aclose": "close",
    "aclosing": "closing",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "asyncio": "time",
}
_RUFF = (sys.executable, "-m", "ruff")


def documents() -> dict[Path, str]:
    """The blocking client by its path.

    Raises:
        ValueError: a text that differs between the two clients is missing from the source.
    """
    source = SOURCE.read_text()
    for asynchronous, blocking in _TEXTS.items():
        if asynchronous not in source:
            raise ValueError(f"{SOURCE} holds no {asynchronous!r}")
        source = source.replace(asynchronous, blocking)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "aio", TARGET.name)
        file.parent.mkdir()
        file.write_text(source)
        unasync.unasync_files([str(file)], [unasync.Rule("/aio/", "/sync/", _NAMES)])
        text = Path(folder, "sync", TARGET.name).read_text()
    for command in (("check", "--fix", "--unsafe-fixes", "--select=F401,I,UP028", "--quiet"), ("format",)):
        filtering = (*_RUFF, *command, "--stdin-filename", str(TARGET), "-")
        text = subprocess.run(filtering, input=text, text=True, capture_output=True, check=True).stdout
    return {TARGET: text}
