"""The bus: the only code that knows a transport.

`ask` and `serve` are questions and answers, `tell` and `take` are jobs, `follow` is news, `show` is progress.
"""

from .audit import audited
from .blobs import Blobs
from .connection import Bus, connect
from .envelope import Call, News
from .envelope import headers as envelope_headers
from .outbox import Outbox, Relay, Sendable, sendable
from .parking import parked
from .principals import Signer, Verifier, new_key
from .rpc import ask
from .service import VERSION, health, run, serve_basics
from .serving import serve
from .settings import BusSettings
from .streams import announce, follow, show, take, tell
from .topology import MEDIA
from .tracing import correlation, trace_id, traceparent
from .watch import Ear, Shown, Watch

__all__ = [
    "MEDIA",
    "VERSION",
    "Blobs",
    "Bus",
    "BusSettings",
    "Call",
    "Ear",
    "News",
    "Outbox",
    "Relay",
    "Sendable",
    "Shown",
    "Signer",
    "Verifier",
    "Watch",
    "announce",
    "ask",
    "audited",
    "connect",
    "correlation",
    "envelope_headers",
    "follow",
    "health",
    "new_key",
    "parked",
    "run",
    "sendable",
    "serve",
    "serve_basics",
    "show",
    "take",
    "tell",
    "trace_id",
    "traceparent",
]
