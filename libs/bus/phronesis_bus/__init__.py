"""The bus: the only code that knows a transport.

`ask` and `serve` are questions and answers, `tell` and `take` are jobs, `follow` is news, `show` is progress.
"""

from .admission import LONGEST_DAYS, Credentials, revoke, sign_credentials
from .client import UntrustedBroker
from .connection import Bus, connect, process_name
from .delivery import count_parked
from .envelope import Call, News
from .envelope import headers as envelope_headers
from .metrics import Kind, Metric, Metrics
from .outbox import Outbox, Relay, Sendable, sendable
from .principals import Signer, Verifier, new_key
from .rpc import ask, ask_each, serve
from .service import health, run, serve_basics, work_in_background
from .settings import BusSettings, secrets_dir
from .streams import (
    Blobs,
    Listener,
    ShownMessage,
    Watch,
    announce,
    audit_entry,
    erase_parked,
    erase_shown,
    follow,
    mask,
    show,
    take,
    tell,
)
from .topology import MEDIA
from .tracing import VERSION, Tracing, correlation, current_tracing, inner_span, record_span, trace_id, traceparent

__all__ = [
    "LONGEST_DAYS",
    "MEDIA",
    "VERSION",
    "Blobs",
    "Bus",
    "BusSettings",
    "Call",
    "Credentials",
    "Kind",
    "Listener",
    "Metric",
    "Metrics",
    "News",
    "Outbox",
    "Relay",
    "Sendable",
    "ShownMessage",
    "Signer",
    "Tracing",
    "UntrustedBroker",
    "Verifier",
    "Watch",
    "announce",
    "ask",
    "ask_each",
    "audit_entry",
    "connect",
    "correlation",
    "count_parked",
    "current_tracing",
    "envelope_headers",
    "erase_parked",
    "erase_shown",
    "follow",
    "health",
    "inner_span",
    "mask",
    "new_key",
    "process_name",
    "record_span",
    "revoke",
    "run",
    "secrets_dir",
    "sendable",
    "serve",
    "serve_basics",
    "show",
    "sign_credentials",
    "take",
    "tell",
    "trace_id",
    "traceparent",
    "work_in_background",
]
