"""The JSON-RPC envelope of a request, read strictly before the SDK reads it: what it would take for something else."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import PROTOCOL_VERSION_META_KEY
from starlette.datastructures import Headers
from starlette.responses import Response

from phronesis_contracts import BadRequest
from phronesis_gateway.strict_json import strict_json

Envelope = dict[str, Any]


class Malformed(Exception):
    """The body is no message of the protocol.

    Args:
        code: the error's code.
        text: the error's text.
    """

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.response = _error(code, text)


def opened(body: bytes, headers: Headers) -> Envelope:
    """The message in a body.

    Raises:
        Malformed: it is no strict JSON; it is a batch or another thing than one object; its id is neither text nor an integer
            (the SDK would take it for a notification, and the caller would wait for ever); or it says in its envelope that
            it is of another revision than the header says, or of a revision that needs the header and lacks it.
    """
    try:
        message = strict_json(body)
    except BadRequest as error:
        raise Malformed(types.PARSE_ERROR, error.detail) from error
    if not isinstance(message, dict):
        raise Malformed(types.INVALID_REQUEST, "the body has to be one message; batches are not taken")
    id = message.get("id", "")
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise Malformed(types.INVALID_REQUEST, "an id is a text or an integer")
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    stated = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    if stated is not None and stated != headers.get(MCP_PROTOCOL_VERSION_HEADER):
        raise Malformed(types.HEADER_MISMATCH, f"{MCP_PROTOCOL_VERSION_HEADER} does not match the message's envelope")
    return message


def params_of(message: Envelope, method: str) -> dict[str, Any] | None:
    """The parameters of a message with this method; `None` for any other."""
    params = message.get("params")
    return params if message.get("method") == method and isinstance(params, dict) else None


def _error(code: int, text: str) -> Response:
    body = types.JSONRPCError(jsonrpc="2.0", id=None, error=types.ErrorData(code=code, message=text))
    return Response(body.model_dump_json(by_alias=True, exclude_unset=True), 400, media_type="application/json")
