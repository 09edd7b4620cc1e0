"""The caller's profile: read, replaced, corrected and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from phronesis.request import Request
from phronesis_contracts.memory import Profile

PROFILE = "/api/v1/profile"


def get_profile() -> Request[Profile]:
    """What is known of the caller."""
    return Request("GET", PROFILE, Profile.model_validate, reads=True)


def put_profile(profile: Mapping[str, Any], idempotency_key: str | None = None, version: int | None = None) -> Request[Profile]:
    """Replace what is known of the caller. Raises `ProfileChanged` when it is not `version` any more."""
    return _change("PUT", {"profile": dict(profile)}, idempotency_key, version)


def update_profile(
    patch: Mapping[str, Any], idempotency_key: str | None = None, version: int | None = None
) -> Request[Profile]:
    """Correct what is known of the caller, by a JSON merge patch (RFC 7396): members replace, `None` removes.

    Raises:
        ProfileChanged: it is not `version` any more.
    """
    return _change("PATCH", {"profile": dict(patch)}, idempotency_key, version)


def delete_profile(idempotency_key: str | None = None, version: int | None = None) -> Request[Profile]:
    """Delete what is known of the caller. Raises `ProfileChanged` when it is not `version` any more."""
    return _change("DELETE", None, idempotency_key, version)


def _change(method: str, body: Any, key: str | None, version: int | None) -> Request[Profile]:
    return Request(method, PROFILE, Profile.model_validate, json=body, key=key or uuid4().hex, version=version)
