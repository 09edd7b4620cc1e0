"""An embedding service that speaks OpenAI's HTTP, with vectors made of words."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.groq_http import http_response
from tests.support.memory import WordEmbedder

DIMENSION = WordEmbedder.dimension
FLOOR = WordEmbedder.floor


async def _connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    words = WordEmbedder()
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].partition("\r\n")[0])
            asked = json.loads(await reader.readexactly(length))
            vectors = await words.embed_texts(asked["input"])
            rows = [{"index": n, "embedding": vector.tolist()} for n, vector in enumerate(vectors)]
            writer.write(http_response(200, json.dumps({"data": rows}), {}))
            await writer.drain()
    writer.close()


@asynccontextmanager
async def embedding_server() -> AsyncIterator[int]:
    """The server's port, for the length of a block."""
    server = await asyncio.start_server(_connection, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
