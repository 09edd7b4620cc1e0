"""The bytes that the scripted server answers with, and what can be wrong with them."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from tests.support import groq_tools
from tests.support.groq_answers import answer


@dataclass
class Fault:
    """What goes wrong with an answer, and for how many calls."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: str | None = None
    """The model's answer, word for word."""
    body: str | None = None
    """The HTTP body, word for word."""
    error: dict[str, Any] | None = None
    """The provider's error object."""
    without: tuple[str, ...] = ()
    """Parts of the completion to leave out: `choices` (empty), `usage`."""
    stall: float = 0.0
    """Seconds before anything is said."""
    cut: bool = False
    """Close the connection in the middle of the body."""
    reset: bool = False
    """Reset the connection in place of an answer."""
    drip: float = 0.0
    """Seconds between one byte of the answer and the next."""
    pause: float = 0.0
    """Seconds between one piece of a stream and the next."""
    break_after: int | None = None
    """Pieces of a stream after which the connection is closed."""
    hold: float = 0.0
    """Seconds that a stream which breaks is silent before."""
    tool_calls: bool = False
    """Call a tool that was not offered, and say nothing."""
    calls: list[tuple[str, Any]] = field(default_factory=list)
    """Tools to call, each by name with its arguments: an object, or the text that stands in its place."""
    finish: str = "stop"
    """Why the model ended, as the provider names it."""
    about: str = ""
    """Only calls whose prompt holds this text."""
    times: int = 1


def completion_body(request: dict[str, Any], fault: Fault) -> str:
    """The completion that answers a request, as a fault has it; or the provider's error."""
    if fault.error is not None or fault.status >= 400:
        return json.dumps({"error": fault.error or {"message": "scripted", "type": "scripted", "code": "scripted"}})
    calls = fault.calls or (groq_tools.next_calls(request) if fault.content is None and "tools" in request else [])
    said = "" if calls else answer(request) if fault.content is None else fault.content
    asked = sum(len(message["content"]) for message in request["messages"])
    message: dict[str, Any] = {"role": "assistant", "content": said}
    finish = fault.finish
    if fault.tool_calls:
        called = {"id": "call_1", "type": "function", "function": {"name": "delete_all", "arguments": '{"really": true}'}}
        message, finish = {"role": "assistant", "content": None, "tool_calls": [called]}, "tool_calls"
    if calls:
        message, finish = {"role": "assistant", "content": None, "tool_calls": groq_tools.called(calls)}, "tool_calls"
    completion: dict[str, Any] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request["model"],
        "choices": [] if "choices" in fault.without else [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": asked // 4, "completion_tokens": len(said) // 4, "total_tokens": (asked + len(said)) // 4},
    }
    if "usage" in fault.without:
        del completion["usage"]
    return json.dumps(completion)


def http_response(status: int, body: str, headers: dict[str, str]) -> bytes:
    """A whole HTTP response."""
    data = body.encode()
    kind = "text/html" if body.startswith("<") else "application/json"
    lines = [f"HTTP/1.1 {status} Scripted", f"content-type: {kind}", f"content-length: {len(data)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data
