"""Keys, and whether the stack is ready."""

from __future__ import annotations

from phronesis.models import KeyInfo, NewBusKey, NewKey, Readiness
from phronesis.request import Request
from phronesis_contracts import Role

from .parts import each, segment


def create_key(
    tenant: str, user: str, role: Role, department: str | None = None, ministry: str | None = None
) -> Request[NewKey]:
    """Make a key for a user of a tenant. Its secret is in this answer and nowhere else."""
    body = {"tenant": tenant, "user": user, "role": role, "department": department, "ministry": ministry}
    stated = {name: value for name, value in body.items() if value is not None}
    return Request("POST", "/api/v1/keys", NewKey.model_validate, json=stated)


def create_bus_key(
    tenant: str, user: str, role: Role, department: str | None = None, ministry: str | None = None, days: int = 90
) -> Request[NewBusKey]:
    """Make a key with which an outside system acts for a user of a tenant on the bus, for so many days."""
    body = {"tenant": tenant, "user": user, "role": role, "department": department, "ministry": ministry, "days": days}
    stated = {name: value for name, value in body.items() if value is not None}
    return Request("POST", "/api/v1/keys/bus", NewBusKey.model_validate, json=stated)


def list_keys() -> Request[tuple[KeyInfo, ...]]:
    """The keys there are, without their secrets."""
    return Request("GET", "/api/v1/keys", each(KeyInfo, "keys"), reads=True)


def revoke_key(key_id: str) -> Request[None]:
    """Revoke a key; its turns end at their next claim."""
    return Request("DELETE", f"/api/v1/keys/{segment(key_id, 'key_id')}", lambda _: None)


def ready() -> Request[Readiness]:
    """Whether the stack is ready, and what is down if not."""
    return Request("GET", "/health/ready", Readiness.model_validate, reads=True, answers=frozenset({503}), timeout=5.0)
