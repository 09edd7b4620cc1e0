"""The three faces of the platform as one: a tool is called by the SDK, by the official MCP client, or by bare nats-py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import httpx2
import nats
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from nats.aio.client import Client as Broker

from phronesis import AsyncClient
from phronesis_contracts import ServiceError
from phronesis_contracts.catalog import TOOLS
from tests.support.people import Person, Town
from tests.support.personas import Persona

Said = dict[str, Any]
"""What a face answers: a tool's output, or under `REFUSED` what of a problem is API."""
REFUSED = "refused"


class Face(Protocol):
    """One way to call tools."""

    async def call(self, tool: str, given: Mapping[str, Any], key: str | None = None) -> Said:
        """What the tool answers."""
        ...


def _problem(body: Mapping[str, Any]) -> Said:
    """What of a problem is API: its text may differ."""
    return {REFUSED: {name: body.get(name) for name in ("code", "status", "field", "retry_after")}}


class Rest:
    """HTTP, by the SDK."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def call(self, tool: str, given: Mapping[str, Any], key: str | None = None) -> Said:
        """What the tool answers."""
        try:
            return dict(await self._client.tools.call(tool, given, key))
        except ServiceError as error:
            return _problem(error.body())


class Mcp:
    """MCP, by the official client."""

    def __init__(self, client: McpClient) -> None:
        self._client = client

    async def call(self, tool: str, given: Mapping[str, Any], key: str | None = None) -> Said:
        """What the tool answers."""
        meta: Any = {"phronesis/idempotency_key": key} if key else None
        result = await self._client.call_tool(tool.replace(".", "_"), dict(given), meta=meta)
        (content,) = result.content
        assert isinstance(content, TextContent)
        if result.is_error:
            return _problem(json.loads(content.text))
        assert result.structured_content == json.loads(content.text)
        return dict(result.structured_content)


class Bare:
    """The bus, by nats-py alone."""

    def __init__(self, broker: Broker, tenant: str, token: str, denied: asyncio.Queue[str]) -> None:
        self._broker = broker
        self._tenant = tenant
        self._token = token
        self._denied = denied

    async def call(self, tool: str, given: Mapping[str, Any], key: str | None = None) -> Said:
        """What the tool answers. That the broker does not let a message through is the refusal of a role."""
        rpc = TOOLS[tool].rpc
        headers = {"Phronesis-Principal": self._token} | ({"Idempotency-Key": key} if key else {})
        subject = f"rpc.{self._tenant}.{rpc.subject}"
        request = self._broker.request(subject, json.dumps(given).encode(), timeout=rpc.timeout + 20, headers=headers)
        answered, denied = asyncio.create_task(request), asyncio.create_task(self._denied.get())
        await asyncio.wait({answered, denied}, return_when=asyncio.FIRST_COMPLETED)
        if denied.done():
            answered.cancel()
            assert f'publish to "{subject}"' in denied.result()
            return _problem({"code": "forbidden", "status": 403})
        denied.cancel()
        found = await answered
        body = json.loads(found.data)
        return _problem(body) if "Nats-Service-Error" in (found.headers or {}) else body


class Caller:
    """Somebody who calls by one face, with a key for HTTP beside it to prepare what the calls are about."""

    def __init__(self, person: Person, face: Face) -> None:
        self.person = person
        self.face = face


@asynccontextmanager
async def callers(
    town: Town, url: str, role: Persona, people: Sequence[Person] | None = None
) -> AsyncIterator[dict[str, Caller]]:
    """One caller for each face.

    Args:
        people: who calls by HTTP, by MCP and on the bus; new users, each in a tenant of their own, if not stated.
    """
    async with AsyncExitStack() as stack:
        rest, agent, system = people or [await town.someone(role=role) for _ in range(3)]
        sdk = await stack.enter_async_context(AsyncClient(url, rest.key))
        http = await stack.enter_async_context(httpx2.AsyncClient(headers={"Authorization": f"Bearer {agent.key}"}, timeout=60))
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        mcp = await stack.enter_async_context(McpClient(transport))
        yield {
            "rest": Caller(rest, Rest(sdk)),
            "mcp": Caller(agent, Mcp(mcp)),
            "bus": Caller(system, await _bare(town, system, role, stack)),
        }


async def _bare(town: Town, person: Person, role: Persona, stack: AsyncExitStack) -> Bare:
    stated = {"tenant": person.tenant, "user": person.user, **role.stated, "days": 1}
    made = (await town.owner.http.post("/api/v1/keys/bus", json=stated)).json()
    denied: asyncio.Queue[str] = asyncio.Queue()

    async def failed(error: Exception) -> None:
        denied.put_nowait(str(error))

    broker = await nats.connect(
        made["servers"],
        user=made["nats_user"],
        password=made["nats_password"],
        inbox_prefix=made["inbox"],
        error_cb=failed,
    )
    stack.push_async_callback(broker.close)
    return Bare(broker, person.tenant, made["token"], denied)
