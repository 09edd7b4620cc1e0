"""Sessions with outside MCP servers by the official SDK, over HTTP to checked addresses or with a command."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client._transport import Transport, TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
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
    jsonrpc_message_adapter,
)

from phronesis_contracts import Principal, ServiceError, Unavailable
from phronesis_contracts.outside import CommandsOff, OutsideFailed

from .ports import Resolve, Seal, Server, secrets_owner
from .schemas import MOST

MAX_RESPONSE = 2 * 1024 * 1024
"""Bytes of one response."""


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Connects to the addresses that were checked, whatever a name leads to by now.

    Args:
        url: the server's endpoint; requests to another origin are refused, so that no redirect leads elsewhere.
        addresses: IP addresses that may be connected to.
        headers: sent with each request, and with none to anybody else.
    """

    def __init__(self, url: str, addresses: tuple[str, ...], headers: Mapping[str, str]) -> None:
        self._url = httpx2.URL(url)
        self._addresses = addresses
        self._headers = dict(headers)
        self._transport = httpx2.AsyncHTTPTransport(trust_env=False, retries=0)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The server's response, from the first address that can be connected to."""
        if _origin(request.url) != _origin(self._url):
            raise httpx2.UnsupportedProtocol("an outside server is asked at its own origin alone", request=request)
        request.headers.update({**self._headers, "Accept-Encoding": "identity"})
        request.extensions = {**request.extensions, "sni_hostname": self._url.raw_host.decode("ascii").removesuffix(".")}
        failed: httpx2.ConnectError | None = None
        for address in self._addresses:
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions=request.extensions,
            )
            try:
                return _limit_response(await self._transport.handle_async_request(pinned), request)
            except httpx2.ConnectError as error:
                failed = error
        raise failed or httpx2.ConnectError("the address leads nowhere", request=request)

    async def aclose(self) -> None:
        await self._transport.aclose()


class _LimitedStream(httpx2.AsyncByteStream):
    """A stream that ends with an error where it gives too much."""

    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_RESPONSE:
                raise httpx2.ReadError(f"a response is over {MAX_RESPONSE} bytes", request=self._request)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _limit_response(response: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise httpx2.ReadError("a response is packed though it was asked not to be", request=request)
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    return httpx2.Response(
        response.status_code,
        headers=response.headers,
        stream=_LimitedStream(response.stream, request),
        extensions=response.extensions,
    )


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return (url.scheme, url.host, url.port)


MAX_LINE = 2 * 1024 * 1024
"""Bytes of one message."""
_GRACE = 2.0
"""Seconds that a server has to end once nobody speaks to it any more."""
LAUNCHER = Path(__file__).with_name("mcp_launcher.py")
"""The program that starts a command, and ends it with its worker."""


@asynccontextmanager
async def command_streams(command: tuple[str, ...]) -> AsyncIterator[TransportStreams]:
    """A running command as a transport of the SDK.

    Args:
        command: the program and its arguments; no shell reads them.

    Raises:
        OutsideFailed: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="phronesis-mcp-", ignore_cleanup_errors=True) as home:
        process = await _start_process(command, home)
        inbound, reader = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        says, said = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [asyncio.create_task(_read(process, inbound)), asyncio.create_task(_write(process, said))]
        try:
            yield reader, says
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.shield(asyncio.create_task(_end(process, tasks)))
            for stream in (inbound, reader, says, said):
                stream.close()


async def _start_process(command: tuple[str, ...], home: str) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-B", str(LAUNCHER), str(os.getpid()), *command),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env={"PATH": os.defpath, "HOME": home, "LANG": "C.UTF-8"},
            cwd=home,
            limit=MAX_LINE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise OutsideFailed("the command cannot be started") from error


async def _read(process: Process, inbound: anyio.abc.ObjectSendStream[SessionMessage | Exception]) -> None:
    """Pass lines on until one is no message, or too long: what comes after it could be anything."""
    assert process.stdout is not None
    async with inbound:
        with contextlib.suppress(ValueError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await process.stdout.readline():
                await inbound.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))


async def _write(process: Process, said: anyio.abc.ObjectReceiveStream[SessionMessage]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError, anyio.ClosedResourceError):
        async with said:
            async for one in said:
                process.stdin.write(one.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await process.stdin.drain()


async def _end(process: Process, tasks: list[asyncio.Task[None]]) -> None:
    await asyncio.gather(*tasks, return_exceptions=True)
    assert process.stdin is not None
    process.stdin.close()
    await _wait_for_end(process)
    if process.returncode is None:
        process.terminate()  # the launcher then ends the whole group
        await _wait_for_end(process)
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _wait_for_end(process: Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GRACE):
            await process.wait()


_PAGES = 10
"""Pages of one list of tools."""
_INFO = Implementation(name="phronesis", version="1")
_KEY = "phronesis/idempotency-key"


@dataclass(frozen=True)
class McpResult:
    text: str
    failed: bool


class McpSession:
    """An open session; see `Talk`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def tools(self) -> Sequence[Any]:
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

    async def call(self, tool: str, arguments: dict[str, Any], key: str) -> McpResult:
        meta = cast(RequestParamsMeta, {_KEY: hashlib.sha256(key.encode()).hexdigest()})
        with _failures():
            try:
                given = await self._client.session.call_tool(tool, arguments, meta=meta)
            except MCPError as error:
                # The SDK makes such errors of its own for lost answers too; this one alone only a server gives.
                if error.code != INVALID_PARAMS:
                    raise
                return McpResult(error.message, True)
        return McpResult(_text(given), bool(given.is_error))


class McpConnector:
    """Opens sessions; see `Connect`. `resolve`: says where an address leads. `commands`: whether commands may be started."""

    def __init__(self, resolve: Resolve, seal: Seal, commands: bool) -> None:
        self._resolve, self._seal, self._commands = resolve, seal, commands

    @asynccontextmanager
    async def __call__(self, who: Principal, server: Server) -> AsyncIterator[McpSession]:
        """A session for the length of a block."""
        _quiet()
        with _failures():
            async with AsyncExitStack() as closing:
                transport = await self._transport(who, server, closing)
                client = await closing.enter_async_context(Client(transport, client_info=_INFO, cache=None))
                # Its own check of results follows schemas that a stranger wrote, expressions and all; ours is what is pinned.
                client.session.validate_tool_result = _accept_unchecked  # type: ignore[method-assign]
                yield McpSession(client)

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
            transport=PinnedTransport(found.url, found.addresses, headers), timeout=server.seconds, trust_env=False
        )
        await closing.enter_async_context(http)
        return streamable_http_client(found.url, http_client=http)

    def _headers(self, who: Principal, server: Server) -> dict[str, str]:
        if server.sealed is None:
            return {}
        try:
            found: dict[str, str] = json.loads(self._seal.open(server.sealed, secrets_owner(who.tenant, server.name)))
        except Unavailable as error:
            raise OutsideFailed("the server's headers cannot be read any more; register it anew") from error
        return found


async def _accept_unchecked(name: str, result: CallToolResult) -> None:
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
    parts = [_content_text(one) for one in given.content]
    if given.structured_content is not None and not any(isinstance(one, TextContent) for one in given.content):
        parts.append(json.dumps(given.structured_content, ensure_ascii=False))
    return "\n".join(parts)


def _content_text(one: ContentBlock) -> str:
    if isinstance(one, TextContent):
        return one.text
    if isinstance(one, EmbeddedResource) and isinstance(one.resource, TextResourceContents):
        return one.resource.text
    return f"({one.type} left out)"
