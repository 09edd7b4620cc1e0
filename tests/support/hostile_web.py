"""A web server that stands in for the public internet and misbehaves, page by page."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from phronesis_contracts.media import MAX_UPLOAD
from phronesis_media.fetching.web import PublicWeb, is_public
from tests.support.hostile_urls import HERE, NAMES, TARGETS

_BLOCK = bytes(256 * 1024)


def answer(status: str, *headers: str, body: bytes = b"") -> bytes:
    """A response."""
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "", ""]).encode("latin-1") + body


def moved(status: int, to: str) -> bytes:
    """A redirect; a place outside of Latin-1 goes as UTF-8."""
    return answer(f"{status} Moved", "Content-Length: 0", f"Location: {to.encode().decode('latin-1')}")


_PAGES = {
    "good": answer("200 OK", "Content-Type: text/plain", "Content-Length: 5", body=b"words"),
    "": answer("200 OK", "Content-Type: text/plain", "Content-Length: 4", body=b"root"),
    "loop": moved(302, "/loop"),
    "gone": answer("404 Not Found", "Content-Length: 0"),
    "broken": answer("500 Oops", "Content-Length: 0"),
    "partial": answer("206 Partial", "Content-Length: 4", body=b"part"),
    "upgrade": answer("101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"),
    "empty": answer("200 OK", "Content-Length: 0"),
    "says-large": answer("200 OK", f"Content-Length: {MAX_UPLOAD + 1}", body=b"x"),
    "short": answer("200 OK", "Content-Length: 100", body=b"four"),
    "packed": answer("200 OK", "Content-Encoding: gzip", "Content-Length: 4", body=b"\x1f\x8b\x00\x00"),
    "packed-bomb": answer("200 OK", "Content-Encoding: gzip", body=gzip.compress(bytes(16 * 1024 * 1024), mtime=0)),
    "many-heads": answer("200 OK", *(f"X-{number}: {number}" for number in range(20_000))),
    "large-head": answer("200 OK", "X: " + "x" * 1_000_000),
    "two-lengths": answer("200 OK", "Content-Length: 4", "Content-Length: 5", body=b"body"),
    "negative-length": answer("200 OK", "Content-Length: -1", body=b"body"),
    "wrong-chunks": answer("200 OK", "Transfer-Encoding: chunked", body=b"zzz\r\nbody\r\n0\r\n\r\n"),
    "location-line-break": answer("302 Found", "Location: http://127.0.0.1/\r\n Host: inside", "Content-Length: 0"),
    "no-web-server": b"220 mail.example ESMTP\r\n\r\n",
    "hangs-up": b"",
}
_HEADS = {
    "endless": answer("200 OK"),
    "endless-chunks": answer("200 OK", "Transfer-Encoding: chunked"),
    "endless-continue": b"",
    "slow-body": answer("200 OK", "Content-Length: 100", body=b"x"),
    "slow-head": b"HTTP/1.1 200 OK\r\nX: ",
    "silent": b"",
}
_REPEATED = {
    "endless": _BLOCK,
    "endless-chunks": b"40000\r\n" + _BLOCK + b"\r\n",
    "endless-continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
}


class HostileWeb:
    """The server, and the resolver that leads to it."""

    def __init__(self, port: int, canary: int) -> None:
        self.port = port
        self.requests = 0
        self._canary = canary
        self._names = {name: list(answers) for name, answers in NAMES.items()}
        self._server: asyncio.Server | None = None

    async def addresses(self, host: str) -> tuple[str, ...]:
        """See `HostResolver`."""
        answers = self._names.get(host.removesuffix("."), [()])
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def web(self, seconds: float) -> PublicWeb:
        """What fetches from it."""
        ports = {"http": self.port, "https": self.port}
        return PublicWeb(self, seconds=seconds, allowed=lambda address: address == HERE or is_public(address), ports=ports)

    def page(self, path: str) -> bytes:
        """The whole answer to a path."""
        first, _, rest = path.strip("/").partition("/")
        if first == "fifty-redirects":
            return moved(302, f"/fifty-redirects/{int(rest or 0) + 1}") if rest != "50" else _PAGES["good"]
        if first.isdigit():
            return moved(int(first), TARGETS[int(rest)].replace("{port}", str(self._canary)))
        return _PAGES[first]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            self.requests += 1
            name = path.strip("/")
            if name in _HEADS:
                await self._hold(reader, writer, name)
            else:
                writer.write(self.page(path))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str) -> None:
        writer.write(_HEADS[name])
        await writer.drain()
        while name in _REPEATED:
            writer.write(_REPEATED[name])
            await writer.drain()
        await reader.read()


@asynccontextmanager
async def hostile_web(canary: int) -> AsyncIterator[HostileWeb]:
    """The server at the canary's own port, where alone the canary does not listen."""
    web = HostileWeb(canary, canary)
    server = await asyncio.start_server(web.serve, HERE, canary)
    try:
        yield web
    finally:
        server.close()
