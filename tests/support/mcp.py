"""Speaking MCP to a running gateway: by the official client, and by hand where a client would not say such a thing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY, CallToolResult, TextContent

from tests.support.gateway import Holder, RunningGateway

NOW = "2026-07-28"
BEFORE = "2025-11-25"
PATH = "/mcp"
ACCEPT = "application/json, text/event-stream"


def url(api: RunningGateway) -> str:
    """The endpoint's address."""
    return f"http://127.0.0.1:{api.server.port}{PATH}"


@asynccontextmanager
async def agent(api: RunningGateway, holder: Holder, mode: str = "auto", **headers: str) -> AsyncIterator[Client]:
    """The official client; `legacy` speaks the revision before by a handshake."""
    http = httpx2.AsyncClient(headers=holder.headers | headers)
    async with http, Client(streamable_http_client(url(api), http_client=http), mode=mode) as client:
        yield client


def message(method: str, params: dict[str, Any] | None = None, *, id: Any = 1, **meta: Any) -> dict[str, Any]:
    """A request of the current revision."""
    envelope = {PROTOCOL_VERSION_META_KEY: NOW, CLIENT_CAPABILITIES_META_KEY: {}} | meta
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": (params or {}) | {"_meta": envelope}}


def headers_of(body: dict[str, Any]) -> dict[str, str]:
    """The headers that go with a request of the current revision."""
    name = body["params"].get("name")
    return {"Accept": ACCEPT, "MCP-Protocol-Version": NOW, "Mcp-Method": body["method"]} | (
        {"Mcp-Name": name} if isinstance(name, str) else {}
    )


async def post(api: RunningGateway, holder: Holder | None, body: Any, **headers: str) -> httpx.Response:
    """Send a request of the current revision; `headers` go before those that belong to it, an empty one leaves one out."""
    given = headers_of(body) if isinstance(body, dict) and "params" in body else {"Accept": ACCEPT}
    given |= {"Content-Type": "application/json"} | (holder.headers if holder else {})
    named = {name.lower(): value for name, value in given.items()}
    named |= {name.replace("_", "-").lower(): value for name, value in headers.items()}
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await api.http.post(PATH, content=content, headers={name: value for name, value in named.items() if value})


async def call(api: RunningGateway, holder: Holder, tool: str, given: dict[str, Any], **meta: Any) -> dict[str, Any]:
    """Call a tool by the current revision; returns its result."""
    answer = await post(api, holder, message("tools/call", {"name": tool, "arguments": given}, **meta))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["result"]
    return found


def text_of(result: CallToolResult) -> Any:
    """What the text of a result says; it is JSON."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return json.loads(content.text)


def problem_of(result: dict[str, Any]) -> dict[str, Any]:
    """The problem in a result that is an error."""
    assert result["isError"] is True
    found: dict[str, Any] = json.loads(result["content"][0]["text"])
    return found
