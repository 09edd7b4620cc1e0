"""The side of a peer: a process in the peer's own environment that does what it is told, a line of JSON at a time.

Standard library and `phronesis_embedding` only, since this runs beside the packages of a peer and not beside ours.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from phronesis_embedding.local import LocalEmbedder

T = TypeVar("T")
THREADS = 2
"""Of the embedder: what the product's memory service uses."""


class Peer(Protocol):
    """A memory to be measured."""

    async def add(self, user: str, messages: Sequence[dict[str, str]]) -> list[str]:
        """Store messages (`speaker`, `text`, `at` as ISO time) of a user; the peer's id of each."""
        ...

    async def search(self, user: str, question: str, limit: int) -> list[str]:
        """The ids of what answers a question, best first."""
        ...


class Embedder:
    """The product's embedder on a loop of its own, for peers that ask for vectors from a thread."""

    def __init__(self, embedder: LocalEmbedder, loop: asyncio.AbstractEventLoop) -> None:
        self._embedder, self._loop = embedder, loop

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Their vectors, grouped into batches of like lengths as the product does it."""
        return [vector.tolist() for vector in await self._embedder.embed_texts(texts)]

    def embed_from_thread(self, texts: Sequence[str]) -> list[list[float]]:
        """The same, for a caller that is not on the loop."""
        return asyncio.run_coroutine_threadsafe(self.embed(texts), self._loop).result()


def serve(make: Callable[[Embedder, dict[str, str]], Coroutine[Any, Any, Peer]]) -> None:
    """Do what standard input says until it ends. `make` gets the embedder and the addresses of the servers."""
    # Whatever a peer prints goes to the errors, and what is answered to the place that was standard output.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    asyncio.run(_serve(make, answers))


async def _serve(make: Callable[[Embedder, dict[str, str]], Coroutine[Any, Any, Peer]], answers: Any) -> None:
    loop = asyncio.get_running_loop()
    async with LocalEmbedder.open(THREADS) as embedder:
        peer = await make(Embedder(embedder, loop), json.loads(sys.argv[1]))
        print(json.dumps({"ready": True}), file=answers)
        while line := await asyncio.to_thread(sys.stdin.readline):
            told = json.loads(line)
            began = loop.time()
            if "messages" in told:
                ids = await peer.add(told["user"], told["messages"])
            else:
                ids = await peer.search(told["user"], told["question"], told["limit"])
            print(json.dumps({"ids": ids, "seconds": loop.time() - began}), file=answers)
