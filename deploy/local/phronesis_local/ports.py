"""Free ports of the loopback interface."""

from __future__ import annotations

import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"
_LOWEST, _HIGHEST = 10_000, 32_000
_given: deque[int] = deque(maxlen=5_000)
"""Ports that this process was given last: who asked for one may not listen on it yet."""


def is_free(port: int) -> bool:
    """Whether nobody listens on `port` of the loopback interface."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port(run: int = 1) -> int:
    """A port that nobody listens on, and that was given to nobody else of this process.

    It lies below the range that the system gives to outgoing connections: while a server is away for a restart, a
    client's own connection could otherwise be given the server's port.

    Args:
        run: how many such ports there are, one after the other, from the one that is returned.

    Raises:
        OSError: hundreds of tries found none.
    """
    for _ in range(500):
        first = random.randint(_LOWEST, _HIGHEST)
        ports = range(first, first + run)
        if not any(port in _given for port in ports) and all(map(is_free, ports)):
            _given.extend(ports)
            return first
    raise OSError("no free port")
