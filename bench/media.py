"""The section of media: how fast each kind is read by its tool over HTTP, by processes that are new, warm, and not asked at
all because the content was read before."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import httpx

from tests.chaos.stack import READERS, ChaosStack

from .load import Connection
from .media_files import KINDS, Kind
from .processes import megabytes
from .progress import say
from .stacks import running

_SIDE = 2
"""Files that media reads side by side by default (`MEDIA_PARSERS`)."""
_TRIES = 3


@dataclass(frozen=True)
class Read:
    """What was measured of one kind."""

    kind: Kind
    kilobytes: float
    """Mean size of a file."""
    sound: float
    """Seconds of a recording; 0 of anything else."""
    upload_ms: float
    cold_s: float
    alone_s: float
    """Median of one file at a time."""
    rate: float
    """Files a second, two at a time."""
    again_ms: float
    """Median of contents that were read before."""
    again_rate: float


class Reader:
    """A client that uploads and reads."""

    def __init__(self, stack: ChaosStack, kind: Kind) -> None:
        self._kind = kind
        self._headers = {"Authorization": f"Bearer {stack.key}"}
        self._url = stack.url
        self._http = httpx.AsyncClient(base_url=stack.url, headers=self._headers, timeout=60, trust_env=False)
        self.sound = 0.0

    async def upload(self, content: bytes) -> str:
        """The id of what was uploaded."""
        named = {"Content-Type": self._kind.type, "X-File-Name": self._kind.file}
        answer = await self._http.post("/api/v1/media", content=content, headers=named)
        assert answer.status_code == 201, answer.text[:300]
        return str(answer.json()["id"])

    async def read(self, ids: list[str], flight: int = 1) -> tuple[list[float], float]:
        """Read media; the seconds of each, and of all."""
        waiting, seconds = iter(ids), []

        async def lane() -> None:
            connection = Connection(self._url, self._headers)
            for id in waiting:
                began = perf_counter()
                body = await self._answered(connection, id)
                seconds.append(perf_counter() - began)
                self.sound = json.loads(body).get("seconds") or 0.0
            connection.close()

        began = perf_counter()
        await asyncio.gather(*(lane() for _ in range(flight)))
        return seconds, perf_counter() - began

    async def _answered(self, connection: Connection, id: str) -> bytes:
        """What the tool answers, which may be that its time is over while the processes it needs still start."""
        path, body = f"/api/v1/tools/{self._kind.tool}", json.dumps({"media_id": id}).encode()
        for _ in range(_TRIES - 1):
            try:
                return await connection.post(path, body)
            except RuntimeError as error:
                if " 504 " not in str(error):
                    raise
                say(f"media: {self._kind.name}: not read in time, asked again")
        return await connection.post(path, body)

    async def close(self) -> None:
        """Close it."""
        await self._http.aclose()


async def section(quick: bool) -> list[str]:
    """Its lines."""
    async with running() as stack:
        rows = []
        for kind in KINDS:
            say(f"media: {kind.name}")
            try:
                rows.append(_row(await _measured(stack, kind, 1 if quick else kind.files)))
            except RuntimeError as error:  # what the tool answered; the other kinds are measured all the same
                rows.append(f"| {kind.name} | not read: {error} |")
        memory = megabytes(stack)["media"]
    return _table(rows, memory)


async def _measured(stack: ChaosStack, kind: Kind, files: int) -> Read:
    reader = Reader(stack, kind)
    try:
        contents = await asyncio.to_thread(lambda: [kind.make(number) for number in range(1 + _SIDE + 2 * files)])
        began = perf_counter()
        ids = [await reader.upload(content) for content in contents]
        uploaded = perf_counter() - began
        stack.kill(READERS)
        (cold,), _ = await reader.read(ids[:1])
        await reader.read(ids[1 : 1 + _SIDE], _SIDE)  # so that as many processes run as will be asked
        alone, _ = await reader.read(ids[1 + _SIDE : 1 + _SIDE + files])
        _, wall = await reader.read(ids[1 + _SIDE + files :], _SIDE)
        again, took = await reader.read([await reader.upload(content) for content in contents])
    finally:
        await reader.close()
    return Read(
        kind,
        kilobytes=sum(map(len, contents)) / len(contents) / 1e3,
        sound=reader.sound,
        upload_ms=1000 * uploaded / len(ids),
        cold_s=cold,
        alone_s=median(alone),
        rate=files / wall,
        again_ms=1000 * median(again),
        again_rate=len(again) / took,
    )


def _row(r: Read) -> str:
    sound = f"{r.rate * r.sound:.1f}" if r.sound else ""
    return (
        f"| {r.kind.name} | {r.kind.what.format(seconds=r.sound)} | {r.kilobytes:.0f} | {r.upload_ms:.1f} | {r.cold_s:.2f} "
        f"| {r.alone_s:.3f} | {r.rate:.2f} | {r.rate * r.kilobytes / 1e3:.3f} | {sound} "
        f"| {r.again_ms:.1f} | {r.again_rate:.0f} |"
    )


def _table(rows: list[str], memory: float) -> list[str]:
    return [
        "Each file has new content, uploaded before and read by its tool over HTTP. New: the first one after the reading",
        "processes were killed, so with their start and the loading of their models. Warm: processes that run. Read before:",
        "the same contents uploaded once more, whose texts are cached. Plain text needs no process.",
        "",
        "| medium | a file | KB | upload ms | new, s | warm, median s | two at a time, files/s | MB/s | seconds of sound/s "
        "| read before, median ms | files/s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *rows,
        "",
        f"Media has {memory:.0f} MB after it with its reading processes, which end when they have been idle for a while.",
    ]
