"""What stands where in a data directory."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class AlreadyRunning(Exception):
    """Another process holds this data directory."""


class DataDir:
    """One data directory.

    Args:
        root: the directory; it need not exist.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().resolve()
        self.record = self.root / "stack.json"
        """The running processes."""
        self.secrets = self.root / "secrets"
        self.roles = self.root / "roles"
        """Passwords of the services' roles, for a database that is not ours."""
        self.trust = self.root / "trust"
        """Public keys of the services that sign principals."""
        self.nats = self.root / "nats"
        self.postgres = self.root / "postgres"
        self.arcadedb = self.root / "arcadedb"
        self.neo4j = self.root / "neo4j"
        self.weaviate = self.root / "weaviate"
        self.stores = self.root / "stores"
        """Which stores hold the data: `embedded` or `production`."""
        self.logs = self.root / "logs"
        self.key = self.root / "key"
        """The API key of the owner."""
        self.url = self.root / "url"
        """The gateway's address while the stack runs."""
        self.restart = self.root / "restart.json"
        """A restart that was asked for and that the supervisor has not taken up yet."""
        self.operator = self.root / "operator.json"
        """The variables with which a backup reaches the servers, while the stack runs."""
        self._lock = self.root / "lock"

    def log(self, name: str) -> Path:
        """The log file of one part."""
        return self.logs / f"{name}.log"

    def create(self) -> None:
        """Make the folders; nobody else may look into them."""
        for folder in (self.root, self.secrets, self.roles, self.trust, self.logs):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.secrets.chmod(0o700)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory for the length of a block; the system lets go of it when the process ends in any way.

        Raises:
            AlreadyRunning: another process holds it.
        """
        with self._lock.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AlreadyRunning(str(self.root)) from error
            yield


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Write a file that a reader, or a kill half-way, sees whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.touch(mode=mode)
    fresh.write_text(text)
    fresh.replace(path)
