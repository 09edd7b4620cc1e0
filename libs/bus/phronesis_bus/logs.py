"""Logs as lines of JSON on standard error, with service, correlation id, trace id, and the ids of turn, conversation and user.

No line holds what people said: the code logs ids, codes and counts. The texts of exceptions are other people's (a
validation error quotes its input, a database its row), so a traceback here shows classes and places, and no text.
"""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from .tracing import conversation, correlation, trace_id, traceparent, turn, user

FIGURES = ("tool", "arguments", "outcome", "tokens", "nodes", "cached", "milliseconds")
"""Fields of its own that a line may have, by the `extra` of the call that writes it."""
_CAUSES = 10
_FRAMES = 60
_Raised = tuple[type[BaseException], BaseException, TracebackType | None]


def configure(service: str, level: int = logging.INFO, stream: TextIO | None = None) -> None:
    """Send the standard library's loggers through one JSON formatter.

    Args:
        service: the service's name.
        level: the least level that is written.
        stream: where to; standard error by default.
    """

    def named(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        event["service"] = service
        for name, current in (
            ("correlation_id", correlation.get()),
            ("trace_id", trace_id(traceparent())),
            ("turn_id", turn.get()),
            ("conversation_id", conversation.get()),
            ("user_id", user.get()),
        ):
            if current:
                event[name] = current
        return event

    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.stdlib.ExtraAdder(FIGURES),
        named,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.ExceptionRenderer(_places),
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for noisy in ("httpx", "neo4j", "nats"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _places(exc_info: _Raised) -> str:
    """An exception with its causes, outermost first: classes, codes of ours, and where each was raised."""
    lines: list[str] = []
    error: BaseException | None = exc_info[1]
    for _ in range(_CAUSES):
        if error is None:
            break
        code = getattr(error, "code", None) or getattr(error, "sqlstate", None)
        lines.append(f"{type(error).__module__}.{type(error).__qualname__}" + (f" ({code})" if isinstance(code, str) else ""))
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return "\n".join(lines)
