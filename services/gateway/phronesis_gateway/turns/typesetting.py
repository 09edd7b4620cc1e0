"""Setting a report in type: each PDF in a process of its own, with limits of its time, memory and pages.

The process imports no more than this file does, since that is most of its time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from phronesis_contracts import TimedOut, Unavailable
from phronesis_contracts.tasks import ReportTooLong

log = logging.getLogger(__name__)

SECONDS = 30.0
"""Seconds that a report may take to be set."""
MAX_PAGES = 200
MAX_PDF = 32 * 1024 * 1024
"""Bytes of a PDF."""
_MEMORY = 1024**3
"""Bytes of address space of the process: the fonts are mapped into it."""
# Their pools would take address space by the number of processors.
_ENVIRONMENT = {"RAYON_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "2"}
_AT_ONCE = 1
_WAITING = 20
"""Reports that may wait for a place."""
_WAITING_EACH = 4
"""Reports of one tenant among them, so that nobody takes all places."""
_TOO_MANY_PAGES = b"pages"
_TEMPLATE = Path(__file__).parent / "assets" / "report.typ"


class Typesetter:
    """Sets reports in type, each in a process of its own that ends with it: the loop that serves people waits for none.

    Args:
        seconds: that one may take.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._waiting: Counter[str] = Counter()

    async def typeset(self, tenant: str, paper: dict[str, Any]) -> bytes:
        """The PDF.

        Args:
            tenant: whose report it is: one tenant has a share of the places alone.

        Raises:
            Unavailable: too many wait, or the process failed.
            TimedOut: it took too long.
            ReportTooLong: it has too many pages.
        """
        if self._waiting.total() >= _WAITING or self._waiting[tenant] >= _WAITING_EACH:
            raise Unavailable("too many reports are set in type at once", retry_after=5)
        self._waiting[tenant] += 1
        try:
            async with self._places:
                return await self._set(json.dumps(paper).encode())
        finally:
            self._waiting[tenant] -= 1
            if not self._waiting[tenant]:
                del self._waiting[tenant]

    async def _set(self, data: bytes) -> bytes:
        command = (sys.executable, "-I", "-B", "-m", __name__)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=_ENVIRONMENT, cwd="/"
            )
        except OSError as error:
            raise Unavailable("no process could be started to set the report in type", retry_after=5) from error
        try:
            async with asyncio.timeout(self._seconds):
                made, _ = await process.communicate(data)
        except TimeoutError as error:
            raise TimedOut("the report could not be set in time; ask for it as an HTML page") from error
        finally:
            await _end(process)
        if made == _TOO_MANY_PAGES or len(made) > MAX_PDF:
            raise ReportTooLong(f"the report would have more than {MAX_PAGES} pages; ask for it as an HTML page")
        if process.returncode != 0 or not made.startswith(b"%PDF"):
            log.error("a report could not be set in type: the process ended with %s", process.returncode)
            raise Unavailable("the report could not be set in type; ask for it as an HTML page", retry_after=5)
        return made


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


def main() -> None:
    """Set the report that is read, and write the PDF."""
    import resource

    import typst

    with contextlib.suppress(OSError):  # where memory runs out, this process ends before the gateway does
        Path("/proc/self/oom_score_adj").write_text("1000")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    given = sys.stdin.buffer.read()
    date = json.loads(given)["date"]
    try:
        made = typst.Compiler(_TEMPLATE, root=_TEMPLATE.parent).compile(
            sys_inputs={"report": given.decode(), "pages": str(MAX_PAGES)},
            timestamp=datetime(date["year"], date["month"], date["day"], tzinfo=UTC),
        )
    except typst.TypstError as error:
        if "too many pages" not in error.message:
            raise
        made = _TOO_MANY_PAGES
    assert isinstance(made, bytes)
    sys.stdout.buffer.write(made)


if __name__ == "__main__":
    main()
