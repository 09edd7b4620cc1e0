"""An outside system that writes to the graph by the bus, for the owner of a stack."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import nats
from nats.aio.client import Client
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from phronesis import AsyncClient
from phronesis_contracts import ServiceError, TimedOut, Unavailable
from phronesis_contracts.twin import UPSERT_TOOL
from tests.support.personas import Persona


class Outsider:
    """A connected outside system.

    Args:
        broker: its connection.
        token: its principal.
    """

    def __init__(self, broker: Client, token: str) -> None:
        self._broker = broker
        self._token = token

    async def upsert(self, batch: dict[str, Any], key: str) -> dict[str, Any]:
        """Write a batch.

        Raises:
            ServiceError: what the graph answered, or that it did not.
        """
        headers = {"Phronesis-Principal": self._token, "Idempotency-Key": key}
        subject = UPSERT_TOOL.rpc.on("local")
        try:
            reply = await self._broker.request(subject, json.dumps(batch).encode(), timeout=10, headers=headers)
        except NoRespondersError as error:
            raise Unavailable("the graph is not there") from error
        except NatsTimeout as error:
            raise TimedOut("the graph does not answer") from error
        found: dict[str, Any] = json.loads(reply.data)
        if "Nats-Service-Error" in (reply.headers or {}):
            raise ServiceError.from_body(found)
        return found


@asynccontextmanager
async def outsider(sdk: AsyncClient) -> AsyncIterator[Outsider]:
    """An outside system with a new key, for the length of a block."""
    made = await sdk.keys.create_for_bus("local", "owner", Persona.MAESTRO, days=1)
    broker = await nats.connect(list(made.servers), user=made.nats_user, password=made.nats_password, inbox_prefix=made.inbox)
    try:
        yield Outsider(broker, made.token)
    finally:
        await broker.close()
