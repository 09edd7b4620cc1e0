"""`phronesis mcp`: what desktop agents start. It passes MCP messages on between them and a gateway, and reads none of them
further than it has to: which revision is spoken, and what is offered, is between the agent and the gateway."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import httpx2
import mcp_types as types
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import PROTOCOL_VERSION_META_KEY

from ..endpoint import Endpoint

PATH = "/mcp"
_PROBLEM = "application/problem+json"
SILENCE = 60.0
"""Seconds without a byte after which the gateway is taken for gone; it says something every fifteen while a call runs."""


def serve(endpoint: Endpoint, tools: str = "all") -> None:
    """Pass messages on between this process's stdin and stdout and a gateway, until stdin ends.

    Args:
        endpoint: the gateway, and the key that every request carries.
        tools: the list of tools that the agent gets, `all` or one of the gateway's short lists.
    """
    # stdout is the agent's; what a transport has to say goes nowhere but into its answers.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    anyio.run(_serve, endpoint, PATH if tools == "all" else f"{PATH}/{tools}")


async def _serve(endpoint: Endpoint, path: str) -> None:
    timeout = httpx2.Timeout(30.0, read=SILENCE)
    http = Steady(headers=endpoint.headers, timeout=timeout, trust_env=not endpoint.is_local)
    async with (
        http,
        stdio_server() as (agent, to_agent),
        to_agent,
        streamable_http_client(endpoint.url + path, http_client=http, max_sse_event_size=None) as (gateway, to_gateway),
        anyio.create_task_group() as both,
    ):
        stamp = Stamp()

        async def answers() -> None:
            async for message in gateway:
                if isinstance(message, SessionMessage):
                    stamp.heard(message.message)
                    await to_agent.send(message)

        both.start_soon(answers)
        async for message in agent:
            if isinstance(message, Exception):
                await to_agent.send(SessionMessage(_PARSE_ERROR))
            else:
                await to_gateway.send(SessionMessage(message.message, ClientMessageMetadata(headers=stamp.on(message.message))))
        both.cancel_scope.cancel()


_PARSE_ERROR = types.JSONRPCError(
    jsonrpc="2.0", id=None, error=types.ErrorData(code=types.PARSE_ERROR, message="this line is no message")
)


class Steady(httpx2.AsyncClient):
    """An HTTP client whose failures are answers: one of them ends the call that it befell, and not the whole session."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; what is no answer of the protocol is made one."""
        try:
            response = await super().send(request, **options)
            if response.headers.get("content-type") != _PROBLEM:
                return response
            body = json.loads(await response.aread())
            await response.aclose()
        except httpx2.TransportError:
            return _failed(request, 503, f"nothing answers at {request.url}")
        return _failed(request, response.status_code, f"{body['code']}: {body['detail']}")


def _failed(request: httpx2.Request, status: int, text: str) -> httpx2.Response:
    error = types.ErrorData(code=types.INTERNAL_ERROR, message=text)
    body = types.JSONRPCError(jsonrpc="2.0", id=None, error=error).model_dump(exclude_unset=True)
    return httpx2.Response(status, json=body, request=request)


class Stamp:
    """The headers of a message, which HTTP wants and stdio has not: they repeat what the message says."""

    def __init__(self) -> None:
        self._initialize: types.RequestId | None = None
        self._agreed: str | None = None

    def on(self, message: types.JSONRPCMessage) -> dict[str, str]:
        if not isinstance(message, types.JSONRPCRequest):
            return self._version(self._agreed)
        if message.method == "initialize":
            self._initialize = message.id
            return {}
        params = message.params or {}
        meta = params.get("_meta")
        stated = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
        if not isinstance(stated, str):
            return self._version(self._agreed)
        name = params.get(NAME_BEARING_METHODS.get(message.method, ""))
        named = {MCP_NAME_HEADER: encode_header_value(name)} if isinstance(name, str) else {}
        return {**self._version(stated), MCP_METHOD_HEADER: message.method, **named}

    def heard(self, message: types.JSONRPCMessage) -> None:
        """Learn from the gateway's answers which revision was agreed on in a handshake."""
        if isinstance(message, types.JSONRPCResponse) and message.id == self._initialize:
            agreed: Any = message.result.get("protocolVersion")
            self._agreed = agreed if isinstance(agreed, str) else None

    @staticmethod
    def _version(version: str | None) -> dict[str, str]:
        return {} if version is None else {MCP_PROTOCOL_VERSION_HEADER: version}
