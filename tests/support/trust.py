"""The certificates that clients trust, read once for a whole run: each client would read the system's whole bundle anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import httpcore2
import httpx


def read_once() -> None:
    """Let all clients of this process that state no certificates of their own share one context of TLS."""
    httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)
    transports: Any = httpx._transports.default
    made: Callable[..., Any] = transports.create_ssl_context
    transports.create_ssl_context = cache(made)
