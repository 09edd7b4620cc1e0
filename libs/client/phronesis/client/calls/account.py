"""Keys, the caller's profile, and whether the stack is ready."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from phronesis.client.models import KeyInfo, NewKey, Readiness
from phronesis.client.request import Request
from phronesis.contracts import Role
from phronesis.contracts.memory import Profile

from .parts import each, segment


def create_key(
    tenant: str, user: str, role: Role, department: str | None = None, ministry: str | None = None
) -> Request[NewKey]:
    """Make a key for a user of a tenant. Its secret is in this answer and nowhere else."""
    body = {"tenant": tenant, "user": user, "role": role, "department": department, "ministry": ministry}
    stated = {name: value for name, value in body.items() if value is not None}
    return Request("POST", "/api/v1/keys", NewKey.model_validate, json=stated)


def list_keys() -> Request[tuple[KeyInfo, ...]]:
    """The keys there are, without their secrets."""
    return Request("GET", "/api/v1/keys", each(KeyInfo, "keys"), reads=True)


def revoke_key(key_id: str) -> Request[None]:
    """Revoke a key; its turns end at their next claim."""
    return Request("DELETE", f"/api/v1/keys/{segment(key_id, 'key_id')}", lambda _: None)


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
