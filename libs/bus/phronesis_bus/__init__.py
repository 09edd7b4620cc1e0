"""The bus: the only code that knows a transport.

`ask` and `serve` are questions and answers, `tell` and `take` are jobs, `follow` is news, `show` is progress.
"""

from .audit import audited, masked
from .blobs import Blobs
from .connection import Bus, connect, process_name
from .envelope import Call, News
from .envelope import headers as envelope_headers
from .erasing import erase_parked, erase_shown
from .metrics import Kind, Metric, Metrics
from .outbox import Outbox, Relay, Sendable, sendable
from .outsiders import LONGEST_DAYS, Credentials, credentials, revoke
from .parking import parked
from .principals import Signer, Verifier, new_key
from .rpc import ask, ask_each
from .service import health, run, serve_basics
from .serving import serve
from .settings import BusSettings, secrets_dir
from .streams import announce, follow, show, take, tell
from .tls import UntrustedBroker
from .topology import MEDIA
from .tracing import VERSION, Tracing, at_hand, correlation, finished, inner, trace_id, traceparent
from .watch import Ear, Shown, Watch

__all__ = [
    "LONGEST_DAYS",
    "MEDIA",
    "VERSION",
    "Blobs",
    "Bus",
    "BusSettings",
    "Call",
    "Credentials",
    "Ear",
    "Kind",
    "Metric",
    "Metrics",
    "News",
    "Outbox",
    "Relay",
    "Sendable",
    "Shown",
    "Signer",
    "Tracing",
    "UntrustedBroker",
    "Verifier",
    "Watch",
    "announce",
    "ask",
    "ask_each",
    "at_hand",
    "audited",
    "connect",
    "correlation",
    "credentials",
    "envelope_headers",
    "erase_parked",
    "erase_shown",
    "finished",
    "follow",
    "health",
    "inner",
    "masked",
    "new_key",
    "parked",
    "process_name",
    "revoke",
    "run",
    "secrets_dir",
    "sendable",
    "serve",
    "serve_basics",
    "show",
    "take",
    "tell",
    "trace_id",
    "traceparent",
]
