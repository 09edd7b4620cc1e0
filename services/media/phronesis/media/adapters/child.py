"""Reads documents in child processes, one process for each document, ended at its limits."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

from phronesis.contracts import ServiceError, TooLarge, Unavailable, UnsupportedMedia

from .. import formats
from ..domain import Reading, tidy
from ..settings import MediaSettings
from ..sniff import decode

log = logging.getLogger(__name__)

_HEAD = 4096
"""Bytes of the first line of an answer at most."""
_CUT = "\n\n[The document goes on; only this much of its text is kept.]"
_OVER = "reading the document takes more memory or time than is allowed"
_REFUSALS: dict[str, ServiceError] = {
    "encrypted": UnsupportedMedia("the document is protected by a password"),
    "pages": TooLarge("the document has too many pages"),
    "memory": TooLarge(_OVER),
    "unreadable": UnsupportedMedia("the document is damaged"),
}
_AT_THE_LIMIT = {-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL}
# One thread for each library: their pools would take address space by the number of processors.
_ENVIRONMENT = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class ChildReader:
    """Documents by `phronesis.media.extract`; plain texts, which need no parser, at once."""

    def __init__(self, settings: MediaSettings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.parsers)

    async def read(self, data: bytes, type: str) -> Reading:
        """The text of the document in `data`."""
        if type in formats.TEXT:
            reading = Reading(text=tidy(decode(data) or ""), engine="utf-8")
        else:
            async with self._slots:
                reading = await self._by_child(data, type)
        if not reading.text:
            raise UnsupportedMedia("no text was found in the document")  # (D-034)
        if len(reading.text) > self._settings.text_limit:
            return reading.model_copy(update={"text": reading.text[: self._settings.text_limit] + _CUT})
        return reading

    async def _by_child(self, data: bytes, type: str) -> Reading:
        settings = self._settings
        limits = {
            "type": type,
            "memory": settings.parse_memory,
            "seconds": settings.parse_seconds,
            "pages": settings.page_limit,
            "characters": settings.text_limit,
        }
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "phronesis.media.extract", json.dumps(limits)),
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,  # parsers quote what they read
                env=_ENVIRONMENT,
                cwd="/",
            )
        except OSError as error:
            raise Unavailable("no process could be started to read the document", retry_after=1) from error
        try:
            async with asyncio.timeout(settings.parse_seconds + 2):
                answer = await _converse(process, data, _HEAD + 4 * (settings.text_limit + 1))
        except TimeoutError as error:
            raise TooLarge(_OVER) from error
        finally:
            await _ended(process)
        return _reading(answer, process.returncode)


async def _converse(process: Process, data: bytes, most: int) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    sending = asyncio.create_task(_send(process.stdin, data))
    answer = bytearray()
    try:
        while chunk := await process.stdout.read(65536):
            answer += chunk
            if len(answer) > most:
                raise TooLarge(_OVER)
        await process.wait()
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    return bytes(answer)


async def _send(pipe: asyncio.StreamWriter, data: bytes) -> None:
    try:
        pipe.write(data)
        await pipe.drain()
        pipe.close()
    except (BrokenPipeError, ConnectionResetError):
        log.debug("a reader ended before it had the whole document")  # its exit says why


async def _ended(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


def _reading(answer: bytes, code: int | None) -> Reading:
    head, _, text = answer.partition(b"\n")
    if code != 0 or not head:
        log.warning("the reader of a document ended with %s", code)
        raise TooLarge(_OVER) if code in _AT_THE_LIMIT else UnsupportedMedia("the document is damaged")
    said = json.loads(head)
    if (why := said.get("error")) is not None:
        refusal = _REFUSALS[why]
        raise type(refusal)(refusal.detail)
    return Reading(text=tidy(text.decode("utf-8", "replace")), engine=said["engine"], pages=said["pages"])
