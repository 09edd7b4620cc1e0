"""The scripted server's other routes: a vision model that describes any picture, and a speech model that hears one sentence."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

from PIL import Image

from tests.support.groq_http import Fault, http_response

HEARD = "The budget review is on Monday."
_VISION, _SPEECH = "/openai/v1/chat/completions", "/openai/v1/audio/transcriptions"


class GroqMediaServer:
    """Answers with what it was sent, or as `fail` says."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.groq_url = ""
        self._faults: deque[Fault] = deque()
        self._open: set[asyncio.Task[None]] = set()

    def fail(self, fault: Fault) -> None:
        """Let the next `fault.times` calls end so."""
        self._faults.extend([fault] * fault.times)

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
        path = head[0].split(" ", 2)[1]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers["content-length"]))
        said = self._seen(json.loads(body)) if path == _VISION else self._heard(path, headers, body)
        fault = self._faults.popleft() if self._faults else Fault()
        await asyncio.sleep(fault.stall)
        if fault.content is not None:
            said = fault.content
        answer = {"text": said} if path == _SPEECH else {"choices": [{"message": {"role": "assistant", "content": said}}]}
        error = {"error": {"message": "scripted"}}
        text = fault.body if fault.body is not None else json.dumps(error if fault.status >= 400 else answer)
        sent = http_response(fault.status, text, fault.headers)
        writer.write(sent[: -len(sent) // 3] if fault.cut else sent)
        await writer.drain()
        return not fault.cut

    def _seen(self, request: dict[str, Any]) -> str:
        prompt, picture = request["messages"][0]["content"]
        kind, _, data = picture["image_url"]["url"].partition(";base64,")
        size = Image.open(BytesIO(base64.b64decode(data))).size
        self.asked.append({"model": request["model"], "prompt": prompt["text"], "kind": kind, "bytes": len(data), "size": size})
        return f"A picture of {size[0]} by {size[1]}."

    def _heard(self, path: str, headers: dict[str, str], body: bytes) -> str:
        assert path == _SPEECH
        boundary = headers["content-type"].partition("boundary=")[2].encode()
        parts = [part.partition(b"\r\n\r\n") for part in body.split(b"--" + boundary)]
        fields = {name: value[:-2] for head, _, value in parts for name in (b'"model"', b'"file"') if b"name=" + name in head}
        self.asked.append({"model": fields[b'"model"'].decode(), "file": fields[b'"file"']})
        return HEARD


@asynccontextmanager
async def groq_media_server() -> AsyncIterator[GroqMediaServer]:
    """A server on a free port of the loopback interface, for the block."""
    server = GroqMediaServer()
    listening = await asyncio.start_server(server._connection, "127.0.0.1", 0)
    server.groq_url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        for task in tuple(server._open):
            task.cancel()
        await asyncio.gather(*server._open, return_exceptions=True)


__all__ = ["HEARD", "Fault", "GroqMediaServer", "groq_media_server"]
