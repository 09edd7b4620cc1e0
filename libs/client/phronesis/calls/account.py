"""Calls about accounts: keys, users and how long their data is kept, readiness, profile, usage, limits and replays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any
from uuid import uuid4

from phronesis_contracts import Role
from phronesis_contracts.answers import Replayed
from phronesis_contracts.deletions import Erasure, ForgetSource, Retention, SourceForgetting, SourcePreview, UserPreview
from phronesis_contracts.ledger import Limits, Part, SetLimit, UsageSums, Window
from phronesis_contracts.memory import Profile
from phronesis_contracts.orchestrator import Turn

from ..models import KeyInfo, NewBusKey, NewKey, Readiness
from ..request import Request, listed, parse_list, path_segment, validate_message, without_none


def create_key(
    tenant: str,
    user: str,
    role: Role = Role.MEMBER,
    department: str | None = None,
    ministry: str | None = None,
    scopes: str | Iterable[str] = (),
    agents: str | Iterable[str] = (),
    tools: str | Iterable[str] = (),
    days: int | None = None,
) -> Request[NewKey]:
    """Make a key for a user of a tenant. Its secret is in this answer and nowhere else.

    Args:
        role: `owner`, `admin`, `member` or `reader`.
        scopes: `act_for_users` for a program with users of its own, `phronesis:read` for one that changes nothing.
        agents: agents that a member or a reader may act as; `noor` where none is named.
        tools: the only tools that it may call; with any, the key opens nothing else.
        days: days after which it ends; it is good until it is revoked where none are stated.

    Raises:
        Forbidden: it would be wider than your own key.
    """
    body: dict[str, Any] = {"tenant": tenant, "user": user, "role": role, "department": department, "ministry": ministry}
    body |= {"scopes": listed(scopes), "agents": listed(agents) or None, "tools": listed(tools) or None, "days": days}
    return Request("POST", "/api/v1/keys", NewKey.model_validate, json=without_none(body))


def create_bus_key(
    tenant: str,
    user: str,
    role: Role = Role.MEMBER,
    department: str | None = None,
    ministry: str | None = None,
    days: int = 90,
    agents: str | Iterable[str] = (),
) -> Request[NewBusKey]:
    """Make a key with which an outside system acts for a user of a tenant on the bus, for so many days; `role` and `agents` as
    of `create`.
    """
    body: dict[str, Any] = {"tenant": tenant, "user": user, "role": role, "department": department, "ministry": ministry}
    body |= {"days": days, "agents": listed(agents) or None}
    return Request("POST", "/api/v1/keys/bus", NewBusKey.model_validate, json=without_none(body))


def list_keys() -> Request[tuple[KeyInfo, ...]]:
    """The keys there are, without their secrets."""
    return Request("GET", "/api/v1/keys", parse_list(KeyInfo, "keys"), reads=True)


def revoke_key(key_id: str) -> Request[None]:
    """Revoke a key; its turns end at their next claim."""
    return Request("DELETE", f"/api/v1/keys/{path_segment(key_id, 'key_id')}", lambda _: None)


def ready() -> Request[Readiness]:
    """Whether the stack is ready, and what is down if not."""
    return Request("GET", "/health/ready", Readiness.model_validate, reads=True, answers=frozenset({503}), timeout=5.0)


PROFILE = "/api/v1/profile"


def get_profile() -> Request[Profile]:
    """What is known of the caller."""
    return Request("GET", PROFILE, Profile.model_validate, reads=True)


def put_profile(profile: Mapping[str, Any], idempotency_key: str | None = None, version: int | None = None) -> Request[Profile]:
    """Replace what is known of the caller. Raises `ProfileChanged` when it is not `version` any more."""
    return _profile_request("PUT", {"profile": dict(profile)}, idempotency_key, version)


def update_profile(
    patch: Mapping[str, Any], idempotency_key: str | None = None, version: int | None = None
) -> Request[Profile]:
    """Correct what is known of the caller, by a JSON merge patch (RFC 7396): members replace, `None` removes.

    Raises:
        ProfileChanged: it is not `version` any more.
    """
    return _profile_request("PATCH", {"profile": dict(patch)}, idempotency_key, version)


def delete_profile(idempotency_key: str | None = None, version: int | None = None) -> Request[Profile]:
    """Delete what is known of the caller. Raises `ProfileChanged` when it is not `version` any more."""
    return _profile_request("DELETE", None, idempotency_key, version)


def _profile_request(method: str, body: Any, key: str | None, version: int | None) -> Request[Profile]:
    return Request(method, PROFILE, Profile.model_validate, json=body, key=key or uuid4().hex, version=version)


_REPLAY = 90.0
"""Seconds that a replay may take: a whole turn."""


def explain_turn(turn_id: str) -> Request[Turn]:
    """A turn with the whole trace of its answer in `trace`."""
    path = f"/api/v1/turns/{path_segment(turn_id, 'turn_id')}"
    return Request("GET", path, Turn.model_validate, params={"include": "trace"}, reads=True)


def replay_turn(turn_id: str, with_instructions: int | None = None) -> Request[Replayed]:
    """Run an ended turn again on its recorded tool results, and compare. Its model calls are paid for.

    Args:
        turn_id: a turn of the caller.
        with_instructions: number of the tenant's release to run it with; the texts that it had where it is left out.

    Raises:
        NotReplayable: it cannot be run again; the text says why.
    """
    path = f"/api/v1/turns/{path_segment(turn_id, 'turn_id')}/replay"
    stated = {} if with_instructions is None else {"with_instructions": with_instructions}
    return Request("POST", path, Replayed.model_validate, json=stated, timeout=_REPLAY)


def get_usage(
    since: date | None = None,
    until: date | None = None,
    by: Part | Iterable[Part] = ("agent", "model"),
    agent: str | None = None,
    user: str | None = None,
    turn_id: str | None = None,
) -> Request[UsageSums]:
    """What model calls used, this month by default: the caller's own, for an admin the tenant's.

    Args:
        since: the first day, in UTC.
        until: the last day.
        by: what the sums are apart by.
        agent: only this agent's.
        user: only this user's.
        turn_id: only this turn's.
    """
    days = {"since": since.isoformat() if since else None, "until": until.isoformat() if until else None}
    params = {"agent": agent, "user": user, "turn_id": turn_id, **days, "by": list(listed(by))}
    return Request("GET", "/api/v1/usage", UsageSums.model_validate, params=params, reads=True)


def get_limits() -> Request[Limits]:
    """The limits that bear on the caller, for an admin all of the tenant's."""
    return Request("GET", "/api/v1/limits", Limits.model_validate, reads=True)


def set_limit(
    window: Window, tokens: int | None = None, usd: float | None = None, agent: str | None = None, user: str | None = None
) -> Request[Limits]:
    """Set a limit; it is removed where neither tokens nor US dollars are stated. For admins."""
    limit = validate_message(SetLimit, {"window": window, "tokens": tokens, "usd": usd, "agent": agent, "user": user})
    return Request("PUT", "/api/v1/limits", Limits.model_validate, json=limit.model_dump(mode="json", exclude_none=True))


def preview_erasure(user_id: str) -> Request[UserPreview]:
    """What the erasure of a user would remove, by service and kind. For administrators, and for the user."""
    path = f"/api/v1/users/{path_segment(user_id, 'user_id')}"
    return Request("DELETE", path, UserPreview.model_validate, params={"dry_run": "true"}, reads=True)


def erase_user(user_id: str) -> Request[Erasure]:
    """Erase all that is held of a user; it goes on after this returns, as `erasure` tells. The user's keys end at once."""
    return Request("DELETE", f"/api/v1/users/{path_segment(user_id, 'user_id')}", Erasure.model_validate, reads=True)


def get_erasure(erasure_id: str) -> Request[Erasure]:
    """How far the erasure of a user is; once it is complete, its proof."""
    return Request("GET", f"/api/v1/erasures/{path_segment(erasure_id, 'erasure_id')}", Erasure.model_validate, reads=True)


def list_erasures(limit: int = 50) -> Request[tuple[Erasure, ...]]:
    """The erasures of the tenant, the newest first: up to 200. For administrators."""
    return Request("GET", "/api/v1/erasures", parse_list(Erasure, "erasures"), params={"limit": limit}, reads=True)


FORGETTINGS = "/api/v1/forgettings"


def preview_source(
    document: str | None = None,
    conversation_id: str | None = None,
    origin: str | None = None,
    origin_id: str | None = None,
    limit: int = 50,
    offset: int = 0,
) -> Request[SourcePreview]:
    """What the forgetting of a source would remove; arguments as of `forgettings.begin`.

    Args:
        limit: things on the page, 1 to 200.
        offset: things that are passed over.
    """
    params: dict[str, str | int | list[str] | None] = {"dry_run": "true", "limit": limit, "offset": offset}
    body = _source(document, conversation_id, origin, origin_id)
    return Request("POST", FORGETTINGS, SourcePreview.model_validate, json=body, params=params, reads=True)


def forget_source(
    document: str | None = None,
    conversation_id: str | None = None,
    origin: str | None = None,
    origin_id: str | None = None,
    idempotency_key: str | None = None,
) -> Request[SourceForgetting]:
    """Forget a source with all that came of it; it goes on after this returns, as `forgettings.get` tells.

    Args:
        document: a document, a picture or a recording: its id, or its file's name.
        conversation_id: a conversation, as far as it has come.
        origin: the kind of an origin, such as `web` or `tool`.
        origin_id: the one origin of that kind; all of them without it.
    """
    body = _source(document, conversation_id, origin, origin_id)
    key = idempotency_key or uuid4().hex
    return Request("POST", FORGETTINGS, SourceForgetting.model_validate, json=body, key=key)


def get_forgetting(forgetting_id: str) -> Request[SourceForgetting]:
    """How far the forgetting of a source is; once it is complete, its proof."""
    path = f"{FORGETTINGS}/{path_segment(forgetting_id, 'forgetting_id')}"
    return Request("GET", path, SourceForgetting.model_validate, reads=True)


def list_forgettings(limit: int = 50) -> Request[tuple[SourceForgetting, ...]]:
    """The caller's forgettings of sources, the newest first: up to 200."""
    parse = parse_list(SourceForgetting, "forgettings")
    return Request("GET", FORGETTINGS, parse, params={"limit": limit}, reads=True)


def _source(document: str | None, conversation_id: str | None, origin: str | None, origin_id: str | None) -> dict[str, Any]:
    of = {"kind": origin, "id": origin_id or ""} if origin is not None else None
    source = {"document": document, "conversation_id": conversation_id, "origin": of}
    return validate_message(ForgetSource, source).model_dump(mode="json", exclude_none=True)


def get_retention() -> Request[Retention]:
    """For how many days the tenant keeps what; `None` is for ever. For administrators."""
    return Request("GET", "/api/v1/retention", Retention.model_validate, reads=True)


def set_retention(
    *,
    messages: int | None = None,
    episodes: int | None = None,
    media: int | None = None,
    conversations: int | None = None,
    traces: int | None = None,
) -> Request[Retention]:
    """Set for how many days the tenant keeps what; what is left out is kept for ever. For administrators.

    Args:
        messages: messages that were added to memory.
        episodes: what memory keeps of ended turns.
        media: files.
        conversations: conversations with agents, with their turns, from the last activity on.
        traces: how answers came about.
    """
    given = {"messages": messages, "episodes": episodes, "media": media, "conversations": conversations, "traces": traces}
    wanted = validate_message(Retention, without_none(given))
    body = wanted.model_dump(exclude_none=True)
    return Request("PUT", "/api/v1/retention", Retention.model_validate, json=body, reads=True)
