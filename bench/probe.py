"""A process that asks a gateway whether it lives, again and again, and tells how long each answer took.

    python -m bench.probe URL     until its input ends; then one line of JSON: [[when, seconds], ...]

The answer needs nothing but the gateway's event loop, so what it takes longer than in an idle gateway, the loop was late.
`when` is of the clock that all processes of a machine share (`time.monotonic`).
"""

from __future__ import annotations

import http.client
import json
import select
import sys
import time
from urllib.parse import urlsplit

_EVERY = 0.01
"""Seconds between an answer and the next question."""
_MOST = 100_000


def main(url: str) -> None:
    """See the module."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port, timeout=30)
    found: list[tuple[float, float]] = []
    while len(found) < _MOST and not select.select([sys.stdin], [], [], _EVERY)[0]:
        began = time.monotonic()
        connection.request("GET", "/health/live")
        connection.getresponse().read()
        found.append((began, time.monotonic() - began))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
