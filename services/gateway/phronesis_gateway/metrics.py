"""What the gateway counts, in the form that Prometheus reads."""

from __future__ import annotations

from phronesis_bus import Kind, Metric, Tracing

from .limits import Streams

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 65)


REQUESTS = Metric("gateway_requests", Kind.COUNTER, "Requests answered.", ("method", "route", "status"))
REQUEST_SECONDS = Metric("gateway_request_seconds", Kind.HISTOGRAM, "Time to the answer's end.", ("method", "route"), _SECONDS)
MCP_SECONDS = Metric(
    "gateway_mcp_seconds",
    Kind.HISTOGRAM,
    "Time of MCP requests, by what came of them.",
    ("method", "tool", "outcome"),
    _SECONDS,
)
IN_FLIGHT = Metric("gateway_in_flight", Kind.GAUGE, "Requests that are being answered.")
OPEN_STREAMS = Metric("gateway_open_streams", Kind.GAUGE, "Event streams that are open.")


class Metrics:
    """The gateway's figures, among those of its process.

    Args:
        streams: counts the open event streams.
        tracing: the process's; two gateways in one test do not share their counts.
    """

    def __init__(self, streams: Streams, tracing: Tracing) -> None:
        self._metrics = tracing.metrics
        self._in_flight = 0
        self._metrics.watch(IN_FLIGHT, lambda: float(self._in_flight))
        self._metrics.watch(OPEN_STREAMS, lambda: float(streams.open))

    def began(self) -> None:
        """Count a request that is being answered."""
        self._in_flight += 1

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request that began, and is answered.

        Args:
            method: the HTTP method; unknown ones are counted as one.
            route: the route's template, so that ids make no series of their own.
            status: status of the answer.
            seconds: time from the request's head to the answer's end.
        """
        self._in_flight -= 1
        self._metrics.count(REQUESTS, method, route, str(status))
        self._metrics.observe(REQUEST_SECONDS, seconds, method, route)

    def mcp(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """Count one MCP request.

        Args:
            method: the MCP method; unknown ones are counted as one.
            tool: the tool that was called, empty for none.
            outcome: `ok`, `tool_error`, `error`, or the code of an error of the protocol.
            seconds: time that it took.
        """
        self._metrics.observe(MCP_SECONDS, seconds, method, tool, outcome)

    async def text(self) -> bytes:
        """All that the process counted, in the text format."""
        return await self._metrics.text()
