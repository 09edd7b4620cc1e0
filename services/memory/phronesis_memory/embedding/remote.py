"""`Embedder` on an OpenAI-compatible address."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import numpy as np
from pydantic import SecretStr

from phronesis_bus.envelope import remaining
from phronesis_contracts import Unavailable
from phronesis_contracts.constitution.maintenance import EmbeddingRefused

from ..values import Vector

_BATCH = 64
_TRIES = 3
_TIMEOUT = 10.0
"""Seconds for one batch, all its tries together."""
_LARGEST = 16 * 1024 * 1024
"""Bytes of an answer that are read: 64 vectors of 4,000 numbers are about six million."""
_AGAIN = frozenset({429, 500, 502, 503, 504})
_LONGEST = 8_000
"""Characters of one text that are sent; such models take about 8,000 tokens, and chunks are far shorter."""


class RemoteEmbedder:
    """Embeddings by HTTP. `open()` makes one."""

    def __init__(self, http: httpx.AsyncClient, model: str, dimension: int, floor: float | None) -> None:
        self._http = http
        self.model = model
        self.dimension = dimension
        self.floor = floor

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, key: SecretStr | None, model: str, dimension: int, floor: float | None
    ) -> AsyncIterator[RemoteEmbedder]:
        """The embedder for the length of a block.

        Args:
            url: the address before `/embeddings`, such as `https://host/v1`.
            key: the bearer key, if the address wants one.
            model: name of the model there.
            dimension: numbers in its vectors.
            floor: the cosine below which its texts are unrelated, if that is known.
        """
        headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
        async with httpx.AsyncClient(base_url=url.rstrip("/"), headers=headers, timeout=_TIMEOUT) as http:
            yield cls(http, model, dimension, floor)

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """See `Embedder`."""
        return await self.embed_texts(texts)

    async def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        """See `Embedder`."""
        vectors: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            vectors += await self._batch(texts[start : start + _BATCH])
        return vectors

    async def _batch(self, texts: Sequence[str]) -> list[Vector]:
        body = {"model": self.model, "input": [text[:_LONGEST] for text in texts], "encoding_format": "float"}
        answer = await self._post(body)
        try:
            rows = sorted(answer["data"], key=lambda row: int(row["index"]))
            vectors = [np.asarray(row["embedding"], dtype=np.float32) for row in rows]
        except (KeyError, TypeError, ValueError) as error:
            raise Unavailable("the embedding service's answer does not parse") from error
        if len(vectors) != len(texts) or any(vector.shape != (self.dimension,) for vector in vectors):
            raise Unavailable(f"the embedding service did not answer with vectors of {self.dimension} numbers")
        return [_normalize(vector) for vector in vectors]

    async def _post(self, body: dict[str, Any]) -> Any:
        failed, cause = "the embedding service does not answer", None
        try:
            async with asyncio.timeout(remaining(_TIMEOUT)):
                for attempt in range(_TRIES):
                    if attempt:
                        await asyncio.sleep(0.2 * 2**attempt * random.uniform(0.5, 1.5))
                    try:
                        status, data = await self._once(body)
                    except httpx.HTTPError as error:
                        cause = error
                        continue
                    if status == httpx.codes.OK:
                        return json.loads(data)
                    failed = "the embedding service refused"
                    if status not in _AGAIN:
                        raise EmbeddingRefused(failed, retry_after=2)
        except TimeoutError as error:
            raise Unavailable("the embedding service does not answer in time", retry_after=2) from error
        except ValueError as error:
            raise Unavailable("the embedding service's answer does not parse") from error
        raise Unavailable(failed, retry_after=2) from cause

    async def _once(self, body: dict[str, Any]) -> tuple[int, bytes]:
        data = bytearray()
        async with self._http.stream("POST", "/embeddings", json=body) as response:
            async for part in response.aiter_bytes():
                data += part
                if len(data) > _LARGEST:
                    raise Unavailable("the embedding service's answer is too long")
        return response.status_code, bytes(data)


def _normalize(vector: Vector) -> Vector:
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0:
        raise Unavailable("the embedding service answered with a vector that has no direction")
    return (vector / length).astype(np.float32)
