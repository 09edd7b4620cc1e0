"""What the gateway counts, in the form that Prometheus reads."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from .limits import Streams

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 65)


class Metrics:
    """The gateway's own registry: two gateways in one process do not share their counts.

    Args:
        streams: counts the open event streams.
    """

    def __init__(self, streams: Streams) -> None:
        self._registry = CollectorRegistry()
        labels = ("method", "route")
        self._requests = Counter("gateway_requests", "Requests answered.", (*labels, "status"), registry=self._registry)
        self._seconds = Histogram(
            "gateway_request_seconds", "Time to the answer's end.", labels, buckets=_SECONDS, registry=self._registry
        )
        self.in_flight = Gauge("gateway_in_flight", "Requests that are being answered.", registry=self._registry)
        open_streams = Gauge("gateway_open_streams", "Event streams that are open.", registry=self._registry)
        open_streams.set_function(lambda: streams.open)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request.

        Args:
            method: the HTTP method; unknown ones are counted as one.
            route: the route's template, so that ids make no series of their own.
            status: status of the answer.
            seconds: time from the request's head to the answer's end.
        """
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def text(self) -> bytes:
        """All of it, in the text format."""
        return generate_latest(self._registry)
