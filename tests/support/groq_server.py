"""A scripted server that speaks Groq's HTTP (and OpenAI's), for tests, bench and chaos: real HTTP on a free port.

    python -m tests.support.groq_server --port 8099 [--latency 0.05]

`POST /openai/v1/chat/completions` and `POST /v1/chat/completions` answer; `GET /calls` lists what was asked (`?messages=1`
with the messages), `DELETE /calls` forgets it and every fault, `POST /script` takes
`{"purpose": "router" | "final" | "repair" | "router.repair" | "final.repair" | "any", "fault": {…}, "times": 1}` or
`{"latency": seconds}`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import struct
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.support.endpoints import HOSTED, PROBE, Endpoint, stream_pieces
from tests.support.groq_answers import kind_of, purpose_of
from tests.support.groq_http import Fault, completion_body, http_response

__all__ = ["Fault", "GroqServer", "groq_server"]

_PATHS = ("/openai/v1/chat/completions", "/v1/chat/completions")
_CALLS, _WITH_MESSAGES = 200_000, 2_000


@dataclass
class Recorded:
    """One call that came."""

    purpose: str
    step: str | None
    model: str
    at: float
    request: dict[str, Any] | None = None


class GroqServer:
    """The server, and its script.

    Args:
        latency: seconds before each answer.
        endpoint: what it takes, and how it refuses the rest.
    """

    def __init__(self, latency: float = 0.0, endpoint: Endpoint = HOSTED) -> None:
        self.latency = latency
        self.endpoint = endpoint
        self.probes: list[dict[str, Any]] = []
        """The requests by which it was found out what it can do; faults of the purpose `probe` are theirs alone."""
        self.port = 0
        self.calls: deque[Recorded] = deque(maxlen=_CALLS)
        self.left = 0
        """Callers that closed the connection while they were kept waiting."""
        self.says: Callable[[str, dict[str, Any]], Fault | None] | None = None
        """What it answers to a call of a purpose where no fault is scripted; `None` for what it says by itself."""
        self._full: deque[Recorded] = deque()
        self._faults: dict[str, deque[Fault]] = {}
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def groq_url(self) -> str:
        """The base address for Groq's SDK."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The base address for OpenAI's SDK."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self, port: int = 0) -> None:
        """Listen on a port of the loopback interface, a free one by default."""
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and drop every connection."""
        if self._server:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def fail(self, purpose: str, fault: Fault) -> None:
        """Let the next `fault.times` calls of a purpose (`any` for all) end so; faults come in the order given."""
        self._faults.setdefault(purpose, deque()).append(fault)

    def reset(self) -> None:
        """Forget calls and faults."""
        self.left = 0
        self.calls.clear()
        self._full.clear()
        self._faults.clear()
        self.probes.clear()

    def forgive(self, about: str) -> None:
        """Forget the faults of the calls about this."""
        for queue in self._faults.values():
            for fault in [fault for fault in queue if fault.about == about]:
                queue.remove(fault)

    def about(self, text: str) -> int:
        """How many calls had this text in their prompt; of the newest ones, whose prompts are kept."""
        prompts = [call.request["messages"] for call in self._full if call.request]
        return sum(any(text in str(message["content"]) for message in prompt) for prompt in prompts)

    def steps(self) -> list[str | None]:
        """The step of each call, in order."""
        return [call.step for call in self.calls]

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the caller went away
        finally:
            self._open.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        if method == "POST" and urlsplit(target).path in _PATHS:
            return await self._complete(reader, writer, headers, json.loads(body))
        status, answer_body = self._control(method, urlsplit(target), body)
        writer.write(http_response(status, json.dumps(answer_body), {}))
        await writer.drain()
        return True

    async def _complete(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, headers: dict[str, str], request: dict[str, Any]
    ) -> bool:
        step = headers.get("x-phronesis-step")
        if step == PROBE:
            self.probes.append(request)
            purpose, fault = PROBE, self._fault_of((PROBE,), request)
        else:
            purpose = purpose_of(request, step)
            self._record(Recorded(purpose, step, request["model"], time.time(), request))
            fault = self._next_fault(purpose, request, step)
            if fault == Fault() and self.says is not None:
                fault = self.says(purpose, request) or fault
        await self._keep_waiting(reader, self.latency + fault.stall)
        if fault.reset:
            writer.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        refused = self.endpoint.refuses(request)
        if refused is not None and fault.status < 400:
            writer.write(http_response(refused[0], json.dumps({"error": refused[1]}), {}))
            await writer.drain()
            return True
        body = fault.body
        if body is None:
            body = json.dumps(self.endpoint.probed(request)) if purpose == PROBE else completion_body(request, fault)
        if request.get("stream") and fault.status < 400 and fault.body is None:
            return await self._stream(reader, writer, json.loads(body), fault)
        sent = http_response(fault.status, body, fault.headers)
        if fault.drip:
            for byte in sent:
                writer.write(bytes((byte,)))
                await self._keep_waiting(reader, fault.drip)
            return True
        writer.write(sent[: -len(sent) // 3] if fault.cut else sent)
        await writer.drain()
        return not fault.cut

    async def _stream(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, completion: dict[str, Any], fault: Fault
    ) -> bool:
        """The completion in pieces, slower or shorter where the fault says so; the connection is closed behind it."""
        writer.write(b"HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        pieces = stream_pieces(completion, self.endpoint.usage_in_streams)
        for at, piece in enumerate(pieces):
            if fault.break_after is not None and at >= fault.break_after:
                if fault.hold:
                    await self._keep_waiting(reader, fault.hold)
                return False
            writer.write(piece)
            await writer.drain()
            await self._keep_waiting(reader, fault.pause)
        return False

    async def _keep_waiting(self, reader: asyncio.StreamReader, seconds: float) -> None:
        if seconds <= 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await reader.read(1)  # a caller that waits says nothing, so this is its end
                self.left += 1
                raise ConnectionResetError

    def _record(self, call: Recorded) -> None:
        self.calls.append(call)
        self._full.append(call)
        if len(self._full) > _WITH_MESSAGES:
            self._full.popleft().request = None

    def _next_fault(self, purpose: str, request: dict[str, Any], step: str | None) -> Fault:
        return self._fault_of((f"{kind_of(request, step)}.{purpose}", purpose, "any"), request)

    def _fault_of(self, keys: tuple[str, ...], request: dict[str, Any]) -> Fault:
        if not self._faults:
            return Fault()
        said = "\n".join(str(message["content"]) for message in request["messages"])
        for key in keys:
            for fault in self._faults.get(key, ()):
                if fault.about in said:
                    fault.times -= 1
                    if not fault.times:
                        self._faults[key].remove(fault)
                    return fault
        return Fault()

    def _control(self, method: str, target: Any, body: bytes) -> tuple[int, Any]:
        match method, target.path:
            case "GET", "/openai/v1/models" | "/v1/models":
                return 200, self.endpoint.models()
            case "GET", "/calls":
                with_messages = "messages" in parse_qs(target.query)
                return 200, [asdict(c) if with_messages else asdict(c) | {"request": None} for c in list(self.calls)]
            case "DELETE", "/calls":
                self.reset()
                return 200, {}
            case "POST", "/script":
                told = json.loads(body)
                self.latency = float(told.get("latency", self.latency))
                if "fault" in told:
                    self.fail(told.get("purpose", "any"), Fault(**told["fault"], times=int(told.get("times", 1))))
                return 200, {}
            case _:
                return 404, {"error": {"message": "no such path"}}


@asynccontextmanager
async def groq_server(latency: float = 0.0, endpoint: Endpoint = HOSTED) -> AsyncIterator[GroqServer]:
    """A server on a free port, for the block."""
    server = GroqServer(latency, endpoint)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def _main(port: int, latency: float) -> None:
    server = GroqServer(latency)
    await server.start(port)
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0)
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_main(options.port, options.latency))
