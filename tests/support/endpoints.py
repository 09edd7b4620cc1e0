"""What a scripted endpoint takes: each kind refuses what the real one refuses, so that no test finds it too kind."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

STRICT = ("openai/gpt-oss-", "gpt-4o", "gpt-4.1", "gpt-5")
"""Beginnings of the names of hosted models that take `json_schema`."""
PROBE = "probe"


@dataclass(frozen=True)
class Endpoint:
    """One kind of endpoint."""

    formats: frozenset[str]
    """What it takes of `json_schema`, `json_object`, `json_object_schema` and `guided_json`."""
    refusal: tuple[int, str] = (400, "this response format is not supported")
    """How it answers to another format."""
    tools: bool = True
    streams: bool = True
    usage_in_streams: bool = True
    limit_fields: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    """Options that limit an answer's length; another one is ignored."""
    strict_models: tuple[str, ...] = ("",)
    """Beginnings of the names of models that take `json_schema`."""
    listed: dict[str, Any] | None = None
    """What `/v1/models` says of a model beside its name."""

    def refuses(self, request: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
        """The status and the error that a request gets; `None` where it is taken."""
        asked = self._format(request.get("response_format"))
        strict = request["model"].startswith(self.strict_models)
        if asked is not None and (asked not in self.formats or (asked == "json_schema" and not strict)):
            return self._error()
        if "tools" in request and not self.tools:
            return 400, {"message": "tools are not supported", "type": "invalid_request_error", "code": None}
        if request.get("stream") and not self.streams:
            return 400, {"message": "streaming is not supported", "type": "invalid_request_error", "code": None}
        return None

    def _format(self, asked: Any) -> str | None:
        if not isinstance(asked, dict) or asked.get("type") == "text":
            return None
        return "json_object_schema" if asked.get("type") == "json_object" and "schema" in asked else str(asked.get("type"))

    def _error(self) -> tuple[int, dict[str, Any]]:
        status, message = self.refusal
        kind = "invalid_request_error" if status < 500 else "internal_server_error"
        return status, {"message": message, "type": kind, "code": None}

    def probed(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request for two tokens: as much of an object, or of a word, as they hold."""
        guided = "guided_json" in request and "guided_json" in self.formats
        whole = '{"word": "hello"}' if guided or self._format(request.get("response_format")) else "hello"
        cut = any(field in request for field in self.limit_fields)
        message = {"role": "assistant", "content": whole[:2] if cut else whole}
        return {
            "id": "chatcmpl-probe",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "length" if cut else "stop"}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 14},
        }

    def models(self) -> dict[str, Any]:
        """What `/v1/models` says."""
        return {"object": "list", "data": [{"id": "scripted", "object": "model", **(self.listed or {})}]}


_ALL = frozenset({"json_schema", "json_object"})
HOSTED = Endpoint(_ALL, (400, "This model does not support response format `json_schema`."), strict_models=STRICT)
"""A provider whose newer models take `json_schema`."""
LLAMA_CPP = Endpoint(
    frozenset({"json_object", "json_object_schema"}),
    (
        500,
        "('body', 'response_format', 'type'): Input should be 'text' or 'json_object'",
    ),
    usage_in_streams=False,
    limit_fields=("max_tokens",),
)
"""`python -m llama_cpp.server`: 500 to `json_schema`, a schema inside `json_object`, and one option for the length."""
GUIDED = Endpoint(frozenset({"guided_json"}), (422, "extra inputs are not permitted"), listed={"max_model_len": 4_096})
"""An older vLLM."""
ONLY_SCHEMAS = Endpoint(frozenset({"json_schema"}), (400, "'response_format.type' must be 'json_schema' or 'text'"))
"""A desktop program that knows no plain `json_object`."""
PLAIN = Endpoint(frozenset(), tools=False, streams=False)
"""A server that completes chats, and no more."""


def stream_pieces(completion: dict[str, Any], usage: bool) -> list[bytes]:
    """A completion as the events of a stream."""
    choice = (completion["choices"] or [{"message": {"content": ""}, "finish_reason": "stop"}])[0]
    head = {name: completion[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def event(body: dict[str, Any]) -> bytes:
        return b"data: " + json.dumps(body).encode() + b"\n\n"

    def piece(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    text = choice["message"].get("content") or ""
    found = [piece({"role": "assistant"})]
    found += [piece({"content": text[at : at + _PIECE]}) for at in range(0, len(text), _PIECE)]
    for at, call in enumerate(choice["message"].get("tool_calls") or ()):
        found.append(piece({"tool_calls": [{"index": at, **call}]}))
    found.append(piece({}, choice["finish_reason"]))
    if usage and "usage" in completion:
        found.append(event({**head, "choices": [], "usage": completion["usage"]}))
    return [*found, b"data: [DONE]\n\n"]


_PIECE = 8
"""Characters of one piece."""
