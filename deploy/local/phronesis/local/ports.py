"""Free ports of the loopback interface."""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"
_LOWEST, _HIGHEST = 20_000, 32_000


def is_free(port: int) -> bool:
    """Whether nobody listens on `port` of the loopback interface."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A port that nobody listens on.

    It lies below the range that the system gives to outgoing connections: while a server is away for a restart, a
    client's own connection could otherwise be given the server's port.

    Raises:
        OSError: hundreds of tries found none.
    """
    for _ in range(500):
        port = random.randint(_LOWEST, _HIGHEST)
        if is_free(port):
            return port
    raise OSError("no free port")
