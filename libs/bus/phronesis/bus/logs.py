"""Logs as lines of JSON on standard error, with service, correlation id and trace id."""

from __future__ import annotations

import logging
import sys

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from .tracing import correlation, trace_id, traceparent


def configure(service: str, level: int = logging.INFO) -> None:
    """Send the standard library's loggers through one JSON formatter."""

    def named(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        event["service"] = service
        if current := correlation.get():
            event["correlation_id"] = current
        if current := trace_id(traceparent()):
            event["trace_id"] = current
        return event

    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        named,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for noisy in ("httpx", "neo4j", "nats"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
