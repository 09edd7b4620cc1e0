"""Messages, turns and what is attached to them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import uuid4

from phronesis.models import Accepted, Trace
from phronesis.request import Request
from phronesis_contracts import TimedOut, TooLarge
from phronesis_contracts.media import MAX_UPLOAD, Media
from phronesis_contracts.orchestrator import Reply, Turn, TurnStatus

from .parts import each, segment

REPLY_TIMEOUT = 120.0
"""Seconds that `send` waits for a reply; the turn itself goes on and can be asked for."""


def send(
    text: str,
    conversation_id: str | None = None,
    media: Iterable[str] = (),
    agent: str = "dialogue",
    idempotency_key: str | None = None,
) -> Request[Reply]:
    """Send a message and wait for the reply.

    Args:
        text: the message.
        conversation_id: a conversation of the caller; a new one begins without it.
        media: ids of uploads, or public addresses, that the message carries.
        agent: who answers.
        idempotency_key: the same key with the same message is answered with the first reply; one is made when absent.

    Raises:
        TimedOut: the turn has not ended yet; it goes on, and its id stands in the text.
        ServiceError: the message was refused, or its turn ended without a reply.
    """
    body = _turn_body(text, conversation_id, media, agent)
    key = idempotency_key or uuid4().hex
    path = "/api/v1/conversations/messages"
    return Request("POST", path, _reply, json=body, key=key, timeout=REPLY_TIMEOUT)


def submit(
    text: str,
    conversation_id: str | None = None,
    media: Iterable[str] = (),
    agent: str = "dialogue",
    idempotency_key: str | None = None,
) -> Request[Accepted]:
    """Hand in a message and return once its turn is accepted; arguments as of `conversations.send`."""
    body = _turn_body(text, conversation_id, media, agent)
    return Request("POST", "/api/v1/turns", Accepted.model_validate, json=body, key=idempotency_key or uuid4().hex)


def get_turn(turn_id: str) -> Request[Turn]:
    """The state of a turn, with its reply or its problem once it has ended."""
    return Request("GET", f"/api/v1/turns/{segment(turn_id, 'turn_id')}", Turn.model_validate, reads=True)


def list_turns(
    conversation_id: str | None = None, status: TurnStatus | None = None, limit: int = 20
) -> Request[tuple[Turn, ...]]:
    """The caller's turns, newest first, without their replies."""
    params: dict[str, str | int] = {"limit": limit}
    if conversation_id is not None:
        params["conversation_id"] = conversation_id
    if status is not None:
        params["status"] = status.value
    return Request("GET", "/api/v1/turns", each(Turn, "turns"), params=params, reads=True)


def cancel_turn(turn_id: str) -> Request[Turn]:
    """Cancel a turn. Raises `TurnEnded` when it has its end already."""
    return Request("DELETE", f"/api/v1/turns/{segment(turn_id, 'turn_id')}", Turn.model_validate)


def retry_turn(turn_id: str, idempotency_key: str | None = None) -> Request[Turn]:
    """Make a new turn of a parked or failed one, linked to it."""
    path = f"/api/v1/turns/{segment(turn_id, 'turn_id')}/retry"
    return Request("POST", path, Turn.model_validate, key=idempotency_key or uuid4().hex)


def trace(turn_id: str) -> Request[Trace]:
    """Every message of a turn, as spans that the services still remember."""
    return Request("GET", f"/api/v1/turns/{segment(turn_id, 'turn_id')}/trace", Trace.model_validate, reads=True)


def upload(content: Path | str | bytes, name: str | None = None) -> Request[Media]:
    """Upload a file.

    Args:
        content: the bytes, or the path of a file.
        name: the name to keep; the file's own when absent.

    Raises:
        OSError: the file cannot be read.
        TooLarge: over 25 MiB.
    """
    path = None if isinstance(content, bytes) else Path(content)
    size = len(content) if isinstance(content, bytes) else Path(content).stat().st_size
    if size > MAX_UPLOAD:
        raise TooLarge(f"{size} bytes; an upload may have {MAX_UPLOAD}", field="file")
    data = content if isinstance(content, bytes) else Path(content).read_bytes()
    file = (name or (path.name if path else "upload"), data)
    return Request("POST", "/api/v1/media", Media.model_validate, files={"file": file}, key=uuid4().hex, timeout=60.0)


def _turn_body(text: str, conversation_id: str | None, media: Iterable[str], agent: str) -> dict[str, Any]:
    body: dict[str, Any] = {"currentMessageText": text, "agent": agent}
    attached = [{"url": m} if m.startswith(("http://", "https://")) else {"mediaId": m} for m in media]
    if attached:
        body["currentMessageMedia"] = attached
    if conversation_id is not None:
        body["conversationId"] = conversation_id
    return body


def _reply(body: Any) -> Reply:
    if "user_response" not in body:
        turn = Accepted.model_validate(body)
        raise TimedOut(f"turn {turn.turn_id} has not ended yet; it goes on")
    return Reply.model_validate(body)
