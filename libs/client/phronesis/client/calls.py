"""Every call of the gateway's API: method, path, parameters, and what the answer parses to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

from pydantic import ValidationError

from phronesis.contracts import BadRequest, Message, Role, TooLarge
from phronesis.contracts.media import MAX_UPLOAD, Media
from phronesis.contracts.memory import ItemKind, Profile, Recall, Recalled, Remember, Remembered, RememberItem
from phronesis.contracts.orchestrator import Conversation, Reply, Turn, TurnStatus

from .models import Accepted, KeyInfo, NewKey, Readiness, ToolInfo, Trace
from .request import Request

REPLY_TIMEOUT = 120.0
"""Seconds that `send` waits for a reply; the turn itself goes on and can be asked for."""
M = TypeVar("M", bound=Message)


def _id(text: str, name: str) -> str:
    """`text` as one segment of a path."""
    if not text or text in (".", ".."):
        raise BadRequest(f"{name} is not an id", field=name)
    return quote(text, safe="")


def checked(model: type[M], fields: Mapping[str, Any]) -> M:
    """A message of these fields, or a `BadRequest` that names the one at fault."""
    try:
        return model.model_validate(fields)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_context=False)[0]
        raise BadRequest(first["msg"], field=".".join(map(str, first["loc"])) or None) from exc


def _turn_body(text: str, conversation_id: str | None, media: Iterable[str], agent: str) -> dict[str, Any]:
    body: dict[str, Any] = {"currentMessageText": text, "agent": agent}
    attached = [{"url": m} if m.startswith(("http://", "https://")) else {"mediaId": m} for m in media]
    if attached:
        body["currentMessageMedia"] = attached
    if conversation_id is not None:
        body["conversationId"] = conversation_id
    return body


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
        ServiceError: the message was refused, or its turn ended without a reply.
    """
    body = _turn_body(text, conversation_id, media, agent)
    key = idempotency_key or uuid4().hex
    path = "/api/v1/conversations/messages"
    return Request("POST", path, Reply.model_validate, json=body, key=key, timeout=REPLY_TIMEOUT)


def get_conversation(conversation_id: str, limit: int = 50, before: int | None = None) -> Request[Conversation]:
    """A conversation with its newest `limit` messages, before sequence `before` where stated."""
    params: dict[str, str | int] = {"limit": limit}
    if before is not None:
        params["before"] = before
    path = f"/api/v1/conversations/{_id(conversation_id, 'conversation_id')}"
    return Request("GET", path, Conversation.model_validate, params=params, reads=True)


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
    return Request("GET", f"/api/v1/turns/{_id(turn_id, 'turn_id')}", Turn.model_validate, reads=True)


def list_turns(
    conversation_id: str | None = None, status: TurnStatus | None = None, limit: int = 20
) -> Request[tuple[Turn, ...]]:
    """The caller's turns, newest first, without their replies."""
    params: dict[str, str | int] = {"limit": limit}
    if conversation_id is not None:
        params["conversation_id"] = conversation_id
    if status is not None:
        params["status"] = status.value
    return Request("GET", "/api/v1/turns", _each(Turn, "turns"), params=params, reads=True)


def cancel_turn(turn_id: str) -> Request[Turn]:
    """Cancel a turn. Raises `TurnEnded` when it has its end already."""
    return Request("DELETE", f"/api/v1/turns/{_id(turn_id, 'turn_id')}", Turn.model_validate)


def retry_turn(turn_id: str) -> Request[Turn]:
    """Make a new turn of a parked or failed one, linked to it."""
    return Request("POST", f"/api/v1/turns/{_id(turn_id, 'turn_id')}/retry", Turn.model_validate)


def trace(turn_id: str) -> Request[Trace]:
    """Every message of a turn, as spans that the services still remember."""
    return Request("GET", f"/api/v1/turns/{_id(turn_id, 'turn_id')}/trace", Trace.model_validate, reads=True)


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


def list_tools() -> Request[tuple[ToolInfo, ...]]:
    """The tools that this caller may call."""
    return Request("GET", "/api/v1/tools", _each(ToolInfo, "tools"), reads=True)


def call_tool(name: str, input: Mapping[str, Any], idempotency_key: str | None = None) -> Request[dict[str, Any]]:
    """Call a tool by name. With an idempotency key it is repeated on a passing failure, without one it is not."""
    return _tool(name, input, dict, key=idempotency_key)


def remember(items: Iterable[RememberItem | str], idempotency_key: str | None = None) -> Request[Remembered]:
    """Store up to 500 things in the caller's memory, all or none; a string is a fact."""
    listed = [{"text": item} if isinstance(item, str) else item for item in items]
    message = checked(Remember, {"items": listed})
    body = message.model_dump(mode="json", exclude_defaults=True)
    return _tool("remember", body, Remembered.model_validate, key=idempotency_key or uuid4().hex)


def recall(query: str, limit: int = 10, kinds: Iterable[ItemKind] = ()) -> Request[Recalled]:
    """Find what the caller's memory holds on `query`, best first; all kinds but episodes unless `kinds` names some."""
    message = checked(Recall, {"query": query, "limit": limit, "kinds": tuple(kinds)})
    return _tool("recall", message.model_dump(mode="json"), Recalled.model_validate, reads=True)


def create_key(
    tenant: str, user: str, role: Role, department: str | None = None, ministry: str | None = None
) -> Request[NewKey]:
    """Make a key for a user of a tenant. Its secret is in this answer and nowhere else."""
    body = {"tenant": tenant, "user": user, "role": role, "department": department, "ministry": ministry}
    stated = {name: value for name, value in body.items() if value is not None}
    return Request("POST", "/api/v1/keys", NewKey.model_validate, json=stated)


def list_keys() -> Request[tuple[KeyInfo, ...]]:
    """The keys there are, without their secrets."""
    return Request("GET", "/api/v1/keys", _each(KeyInfo, "keys"), reads=True)


def revoke_key(key_id: str) -> Request[None]:
    """Revoke a key; its turns end at their next claim."""
    return Request("DELETE", f"/api/v1/keys/{_id(key_id, 'key_id')}", lambda _: None)


def get_profile() -> Request[Profile]:
    """What is known of the caller."""
    return Request("GET", "/api/v1/profile", Profile.model_validate, reads=True)


def put_profile(profile: Mapping[str, Any], idempotency_key: str | None = None) -> Request[Profile]:
    """Replace what is known of the caller."""
    key = idempotency_key or uuid4().hex
    return Request("PUT", "/api/v1/profile", Profile.model_validate, json={"profile": dict(profile)}, key=key)


def ready() -> Request[Readiness]:
    """Whether the stack is ready, and what is down if not."""
    return Request("GET", "/health/ready", Readiness.model_validate, reads=True, answers=frozenset({503}), timeout=5.0)


def _tool(name: str, body: Mapping[str, Any], parse: Any, *, key: str | None = None, reads: bool = False) -> Request[Any]:
    path = f"/api/v1/tools/{_id(name, 'name')}"
    return Request("POST", path, parse, json=dict(body), key=key, reads=reads, timeout=60.0)


def _each(model: type[M], name: str) -> Any:
    return lambda body: tuple(model.model_validate(one) for one in (body[name] if isinstance(body, dict) else body))
