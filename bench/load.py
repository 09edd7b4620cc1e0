"""A lean HTTP client, so that what is measured is the server: one kept-alive connection for each request in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter
from urllib.parse import urlsplit


@dataclass(frozen=True)
class Timed:
    """Times of a number of requests."""

    seconds: tuple[float, ...]
    wall: float

    @property
    def p50(self) -> float:
        """Median, in milliseconds."""
        return 1000 * median(self.seconds)

    @property
    def p95(self) -> float:
        """95th percentile, in milliseconds."""
        return 1000 * quantiles(self.seconds, n=20)[-1]

    @property
    def rate(self) -> float:
        """Requests a second."""
        return len(self.seconds) / self.wall


class Connection:
    """One kept-alive connection."""

    def __init__(self, url: str, headers: dict[str, str]) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def post(self, path: str, body: bytes) -> bytes:
        """Post JSON; the body of the reply. Raises `RuntimeError` for anything but 200."""
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\n{self._headers}Content-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        fields = dict(line.lower().split(": ", 1) for line in answer.split("\r\n")[1:] if ": " in line)
        found = await (reader.readexactly(int(fields["content-length"])) if "content-length" in fields else _chunks(reader))
        if " 200 " not in answer.split("\r\n", 1)[0]:
            raise RuntimeError(f"{answer.splitlines()[0]}: {found[:200]!r}")
        return found

    def close(self) -> None:
        """Close it."""
        if self._streams is not None:
            self._streams[1].close()


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts = []
    while True:
        size = int(await reader.readline(), 16)
        parts.append((await reader.readexactly(size + 2))[:-2])
        if size == 0:
            return b"".join(parts)


async def measure(
    url: str, headers: dict[str, str], path: str, body: Callable[[int], bytes], requests: int, flight: int
) -> Timed:
    """Make `requests` posts with `flight` of them under way at any time."""
    numbers = iter(range(requests))
    seconds: list[float] = []

    async def client() -> None:
        connection = Connection(url, headers)
        for number in numbers:
            start = perf_counter()
            await connection.post(path, body(number))
            seconds.append(perf_counter() - start)
        connection.close()

    start = perf_counter()
    await asyncio.gather(*(client() for _ in range(flight)))
    return Timed(tuple(seconds), perf_counter() - start)
