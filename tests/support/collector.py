"""A collector that takes OTLP by HTTP, as its specification has it, and keeps the spans that came."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse


@dataclass(frozen=True)
class Exported:
    """A span as it came over the wire."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: dict[str, Any]


class Collector:
    """The spans that were exported to it, in the order in which they came."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Exported] = []
        self.raw = b""
        """Everything that came, as it came."""

    def of(self, trace_id: str) -> list[Exported]:
        """The spans of a trace in order of start."""
        return sorted((span for span in self.spans if span.trace_id == trace_id), key=lambda span: span.start_ns)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
                body = await reader.readexactly(int(headers["content-length"]))
                assert head[0].startswith("POST /v1/traces "), head[0]
                self._take(gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body)
                told = ExportTraceServiceResponse().SerializeToString()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\n")
                writer.write(b"content-length: %d\r\n\r\n" % len(told) + told)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the exporter went away
        finally:
            writer.close()

    def _take(self, body: bytes) -> None:
        self.raw += body
        request = ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            about = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
            service = about["service.name"].removeprefix("phronesis-")
            self.spans += [_exported(service, span) for scope in resource.scope_spans for span in scope.spans]


def _exported(service: str, span: Any) -> Exported:
    return Exported(
        service,
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        span.kind,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        {pair.key: _value(pair.value) for pair in span.attributes},
    )


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_value(each) for each in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """A collector for the length of a block, on a free port of the loopback interface."""
    collector = Collector()
    server = await asyncio.start_server(collector.answer, "127.0.0.1", 0)
    collector.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield collector
    finally:
        server.close()
