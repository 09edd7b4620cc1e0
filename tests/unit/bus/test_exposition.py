"""The port for Prometheus: one answer, and nothing that a stranger can hold open."""

from __future__ import annotations

import asyncio

import pytest

from phronesis_bus.metrics import Kind, Metric, Metrics
from phronesis_bus.service import serve_metrics

DEPTH = Metric("depth", Kind.GAUGE, "What waits.")


async def said(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    return answer


async def test_the_metrics_are_read_at_their_path() -> None:
    metrics = Metrics()
    metrics.set(DEPTH, 3)
    async with serve_metrics(metrics, "127.0.0.1:0", lambda: True) as port:
        head, _, body = (await said(port, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")).partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"HTTP/1.1 200 OK"
    assert body == b"# HELP depth What waits.\n# TYPE depth gauge\ndepth 3.0\n"


async def test_health_tells_a_process_that_lives_from_one_that_can_be_asked() -> None:
    up = asyncio.Event()
    async with serve_metrics(Metrics(), "127.0.0.1:0", up.is_set) as port:
        before = [
            (await said(port, b"GET /health/%s HTTP/1.1\r\n\r\n" % path)).split(b"\r\n")[0] for path in (b"live", b"ready")
        ]
        up.set()
        after = await said(port, b"GET /health/ready HTTP/1.1\r\n\r\n")
    assert before == [b"HTTP/1.1 200 OK", b"HTTP/1.1 503 Service Unavailable"]
    assert after.endswith(b"\r\n\r\nready\n")


@pytest.mark.parametrize("request_line", [b"GET / HTTP/1.1", b"POST /metrics HTTP/1.1", b"", b"\x00\xff"])
async def test_everything_else_is_not_found(request_line: bytes) -> None:
    async with serve_metrics(Metrics(), "127.0.0.1:0", lambda: True) as port:
        answer = await said(port, request_line + b"\r\n\r\n")
    assert answer.splitlines()[0] == b"HTTP/1.1 404 Not Found"


async def test_a_request_without_end_is_closed() -> None:
    async with serve_metrics(Metrics(), "127.0.0.1:0", lambda: True) as port:
        assert await said(port, b"GET /metrics HTTP/1.1\r\nX: " + b"a" * 20_000) == b""


async def test_many_who_say_nothing_keep_nobody_out_for_long() -> None:
    metrics = Metrics()
    async with serve_metrics(metrics, "127.0.0.1:0", lambda: True) as port:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        for _, writer in silent:
            writer.close()
        async with asyncio.timeout(10):
            while b"200 OK" not in await said(port, b"GET /metrics HTTP/1.1\r\n\r\n"):
                pass
