"""Sessions with outside MCP servers by the official SDK. Its errors become ours; what a server says stays data."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx2
from mcp import Client, MCPError
from mcp.client._transport import Transport
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    INVALID_PARAMS,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    Implementation,
    PaginatedRequestParams,
    RequestParamsMeta,
    TextContent,
    TextResourceContents,
)

from phronesis_contracts import Principal, ServiceError, Unavailable
from phronesis_contracts.outside import CommandsOff, OutsideFailed

from ..outside.domain import Server, owner
from ..outside.listing import MOST
from ..outside.ports import Resolve, Seal
from .mcp_command import command_streams
from .mcp_http import Pinned

_PAGES = 10
"""Pages of one list of tools."""
_INFO = Implementation(name="phronesis", version="1")
_KEY = "phronesis/idempotency-key"


@dataclass(frozen=True)
class Result:
    """What a tool gave."""

    text: str
    failed: bool


class McpTalk:
    """An open session; see `Talk`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> Sequence[Any]:
        """The members of its list of tools."""
        found: list[Any] = []
        cursor: str | None = None
        with _failures():
            for _ in range(_PAGES):
                page = await self._client.session.list_tools(
                    params=None if cursor is None else PaginatedRequestParams(cursor=cursor)
                )
                found += [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in page.tools]
                cursor = page.next_cursor
                if cursor is None or len(found) >= MOST:
                    break
        return found

    async def call(self, tool: str, arguments: dict[str, Any], key: str) -> Result:
        """Call a tool; the key goes along hashed, for servers that know such keys."""
        meta = cast(RequestParamsMeta, {_KEY: hashlib.sha256(key.encode()).hexdigest()})
        with _failures():
            try:
                given = await self._client.session.call_tool(tool, arguments, meta=meta)
            except MCPError as error:
                # The SDK makes such errors of its own for lost answers too; this one alone only a server gives.
                if error.code != INVALID_PARAMS:
                    raise
                return Result(error.message, True)
        return Result(_text(given), bool(given.is_error))


class McpConnector:
    """Opens sessions; see `Connect`.

    Args:
        resolve: says where an address leads.
        seal: opens the encrypted headers.
        commands: whether commands may be started.
    """

    def __init__(self, resolve: Resolve, seal: Seal, commands: bool) -> None:
        self._resolve = resolve
        self._seal = seal
        self._commands = commands

    @asynccontextmanager
    async def __call__(self, who: Principal, server: Server) -> AsyncIterator[McpTalk]:
        """A session for the length of a block."""
        _quiet()
        with _failures():
            async with AsyncExitStack() as closing:
                transport = await self._transport(who, server, closing)
                client = await closing.enter_async_context(Client(transport, client_info=_INFO, cache=None))
                # Its own check of results follows schemas that a stranger wrote, expressions and all; ours is what is pinned.
                client.session.validate_tool_result = _unchecked  # type: ignore[method-assign]
                yield McpTalk(client)

    async def _transport(self, who: Principal, server: Server, closing: AsyncExitStack) -> Transport:
        if server.command is not None:
            if not self._commands:
                raise CommandsOff("this installation starts no commands")
            return command_streams(server.command)
        assert server.url is not None, "a server has an address or a command"
        found = await self._resolve(who, server.url)
        if server.sealed is not None and not found.trusted and not server.url.lower().startswith("https://"):
            raise OutsideFailed("secret headers are sent over https alone")
        headers = self._headers(who, server)
        http = httpx2.AsyncClient(
            transport=Pinned(found.url, found.addresses, headers), timeout=server.seconds, trust_env=False
        )
        await closing.enter_async_context(http)
        return streamable_http_client(found.url, http_client=http)

    def _headers(self, who: Principal, server: Server) -> dict[str, str]:
        if server.sealed is None:
            return {}
        try:
            found: dict[str, str] = json.loads(self._seal.open(server.sealed, owner(who.tenant, server.name)))
        except Unavailable as error:
            raise OutsideFailed("the server's headers cannot be read any more; register it anew") from error
        return found


async def _unchecked(name: str, result: CallToolResult) -> None:
    return None


def _quiet() -> None:
    """Keep the SDK from the log: it writes down what servers say, and what a transport failed with."""
    for name in ("mcp", "httpx2", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


@contextmanager
def _failures() -> Iterator[None]:
    """Let whatever the SDK raises be one error of ours; what a server said of it goes nowhere."""
    try:
        yield
    except (ServiceError, TimeoutError):
        raise
    except Exception as error:
        ours = error.split(ServiceError)[0] if isinstance(error, ExceptionGroup) else None
        if ours is not None:
            raise _first(ours) from error
        raise OutsideFailed("the outside server gave no answer that can be used") from error


def _first(group: ExceptionGroup[ServiceError]) -> BaseException:
    found: BaseException = group
    while isinstance(found, ExceptionGroup):
        found = found.exceptions[0]
    return found


def _text(given: CallToolResult) -> str:
    """What a result says: its texts; its structure where it has none; of other contents the kind alone."""
    parts = [_said(one) for one in given.content]
    if given.structured_content is not None and not any(isinstance(one, TextContent) for one in given.content):
        parts.append(json.dumps(given.structured_content, ensure_ascii=False))
    return "\n".join(parts)


def _said(one: ContentBlock) -> str:
    if isinstance(one, TextContent):
        return one.text
    if isinstance(one, EmbeddedResource) and isinstance(one.resource, TextResourceContents):
        return one.resource.text
    return f"({one.type} left out)"
