"""An outside system on the bus: what it comes in with, and a client of the broker's own library."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from phronesis_bus import Bus, Credentials, connect, sign_credentials
from phronesis_bus.admission import admit
from phronesis_bus.client import make_tls_options
from phronesis_bus.declare import USER as DECLARE
from phronesis_contracts import Principal
from tests.support.bus import somebody
from tests.support.servers import NatsServer


@asynccontextmanager
async def admitting(server: NatsServer) -> AsyncIterator[Bus]:
    """The declaring program's answers to the broker, for the length of a block."""
    async with connect(DECLARE, server.settings(DECLARE)) as bus:
        await admit(bus)
        yield bus


def access(gateway: Bus, seconds: float = 3600, **who: Any) -> tuple[Principal, Credentials]:
    """An outside system in a tenant of its own, and what it comes in with."""
    stated = somebody(key=str(uuid4()), **who)
    return stated, sign_credentials(gateway, stated, seconds)


class Outside:
    """A connected outside system."""

    def __init__(self, who: Principal, made: Credentials) -> None:
        self.who = who
        self.made = made
        self.nats = Client()
        self.errors: list[str] = []
        self.headers = {"Phronesis-Principal": made.token}

    async def connect(self, url: str, **changes: Any) -> None:
        """Come in.

        Raises:
            NatsError: the broker does not let it in.
        """

        async def failed(error: Exception) -> None:
            self.errors.append(str(error).lower())

        stated: dict[str, Any] = {"user": self.made.user, "password": self.made.password, "inbox_prefix": self.made.inbox}
        await self.nats.connect(url, error_cb=failed, allow_reconnect=False, connect_timeout=5, **stated | changes)

    async def ask(self, subject: str, body: bytes = b"{}", **headers: str) -> Msg:
        """The answer to a question."""
        return await self.nats.request(subject, body, timeout=20, headers=self.headers | headers)

    def refused(self, what: str) -> bool:
        """Whether the broker has refused something that has to do with `what`."""
        return any("permissions violation" in error and what.lower() in error for error in self.errors)


@asynccontextmanager
async def outside(server: NatsServer, who: Principal, made: Credentials) -> AsyncIterator[Outside]:
    """A connected outside system, for the length of a block."""
    system = Outside(who, made)
    await system.connect(server.url, **make_tls_options(server.settings("gateway")))
    try:
        yield system
    finally:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(3):
                await system.nats.close()


class SpiedServer(NatsServer):
    """A broker with one more user, `spy`, who may hear and say everything."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        program = self._child.program

        async def prepare() -> None:
            await program.prepare()
            config = self._data.nats / "nats.conf"
            text = config.read_text().replace("auth_users: [", 'auth_users: ["spy", ')
            config.write_text(text.replace("5, users: [", '5, users: [ {"user": "spy", "password": "spy"},'))

        self._child.program = replace(program, prepare=prepare)


@asynccontextmanager
async def spied_broker(folder: Path) -> AsyncIterator[tuple[NatsServer, Client]]:
    """A broker of a test's own that lets outside systems in, and its spy."""
    server, spy = SpiedServer(folder / "nats"), Client()
    await server.start()
    try:
        async with admitting(server):
            await spy.connect(server.url, user="spy", password="spy")
            yield server, spy
            await spy.close()
    finally:
        await server.kill()


async def is_let_in(server: NatsServer, made: Credentials, **changes: Any) -> bool:
    """Whether the broker lets this system in."""
    system = Outside(somebody(), made)
    try:
        await system.connect(server.url, **changes)
    except (NatsError, OSError, TimeoutError):
        return False
    await system.nats.close()
    return True
