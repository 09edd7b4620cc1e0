"""The embedder behind an OpenAI-compatible address, against a real HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest
from pydantic import SecretStr

from phronesis_contracts import Unavailable
from phronesis_memory.embedding.remote import RemoteEmbedder


class _Server(ThreadingHTTPServer):
    """Answers with what `answers` says next, and with good vectors when it says nothing."""

    answers: list[tuple[int, Any]]
    asked: list[dict[str, Any]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append({"path": self.path, "key": self.headers["Authorization"], **body})
        status, answer = self.server.answers.pop(0) if self.server.answers else (200, _good(body["input"]))
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the output of the tests clean."""


def _good(texts: list[str]) -> dict[str, Any]:
    rows = [{"index": n, "embedding": [float(len(text)), 3.0, 4.0]} for n, text in enumerate(texts)]
    return {"data": rows[::-1]}


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server(("127.0.0.1", 0), _Handler) as opened:
        opened.answers, opened.asked = [], []
        thread = threading.Thread(target=opened.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield opened
        opened.shutdown()
        thread.join()


@pytest.fixture
async def embedder(server: _Server) -> AsyncIterator[RemoteEmbedder]:
    url = f"http://127.0.0.1:{server.server_port}/v1/"
    async with RemoteEmbedder.open(url, SecretStr("s3cret"), "big-model", 3, 0.4) as opened:
        yield opened


async def test_texts_go_in_batches_and_come_back_in_order_with_length_1(server: _Server, embedder: RemoteEmbedder) -> None:
    vectors = await embedder.embed_texts(["x" * (n + 1) for n in range(100)])
    assert [len(asked["input"]) for asked in server.asked] == [64, 36]
    assert {(asked["path"], asked["key"], asked["model"]) for asked in server.asked} == {
        ("/v1/embeddings", "Bearer s3cret", "big-model")
    }
    for n, vector in enumerate(vectors):
        assert vector.tolist() == pytest.approx((np.array([n + 1, 3, 4]) / np.hypot(n + 1, 5)).tolist(), rel=1e-5)


async def test_a_passing_failure_is_tried_again(server: _Server, embedder: RemoteEmbedder) -> None:
    server.answers = [(429, {}), (503, b"<html>")]
    assert (await embedder.embed_queries(["xxx"]))[0].shape == (3,)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "answer",
    [
        (401, {"error": "s3cret is wrong"}),
        (200, b"<html>"),
        (200, {"data": []}),
        (200, {"data": "x"}),
        (200, {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}),
        (200, {"data": [{"index": 0, "embedding": [0.0, 0.0, 0.0]}]}),
        (200, b'{"data": [{"index": 0, "embedding": [NaN, 1, 1]}]}'),
    ],
)
async def test_a_bad_answer_is_a_typed_failure_without_its_text(
    server: _Server, embedder: RemoteEmbedder, answer: tuple[int, Any]
) -> None:
    server.answers = [answer]
    with pytest.raises(Unavailable) as error:
        await embedder.embed_queries(["x"])
    assert "s3cret" not in error.value.detail
    assert len(server.asked) == 1


async def test_an_address_where_nobody_is_fails_in_time(embedder: RemoteEmbedder) -> None:
    async with RemoteEmbedder.open("http://127.0.0.1:1", None, "m", 3, None) as nobody:
        with pytest.raises(Unavailable):
            await nobody.embed_queries(["x"])
